"""The log as others see it: what is kept, answered page by page, and evicted with a record."""

from __future__ import annotations

import msgspec

from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import ChainHead, Entry, Store
from linnet.delivery.cards import CardBook
from linnet.delivery.chain import Chain
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.messages import ChainPlace, History, HistoryPage, Resend, Resent
from linnet.event.event import Unverified, Verified
from linnet.event.signing import decode_unit, encode_unit
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

_EVICTED = "evicted"
_encode = msgspec.msgpack.Encoder().encode
_decode_tip = msgspec.msgpack.Decoder(tuple[AuthorId, DeviceId, int, int, EventId]).decode
_decode_late = msgspec.msgpack.Decoder(tuple[int, float]).decode
EVICT_UNITS = 1024
"""Units that one look for evictions removes: a bound on the time it takes."""


def known_heads(topic: TopicId, store: Store, passed: bool = False) -> list[ChainHead]:
    """How far every chain of a topic went, those included of which nothing is kept any more.

    If `passed` is asked for, also those of which nothing was kept as it was not wanted (`Archive.pass_over`).
    """
    heads = {head.author + head.device: head for head in store.log.heads(topic)}
    for space in (_tips(topic), _passed(topic)) if passed else (_tips(topic),):
        for key, value in store.cells.scan(space):
            heads.setdefault(key, ChainHead(*_decode_tip(value)))
    return list(heads.values())


def _tips(topic: TopicId) -> str:
    return f"tip {topic.hex()}"


def _passed(topic: TopicId) -> str:
    return f"passed {topic.hex()}"


def _late(topic: TopicId) -> str:
    return f"late {topic.hex()}"


class Archive:
    """What this node keeps of one topic."""

    def __init__(
        self, topic: TopicId, store: Store, cards: CardBook, config: DeliveryConfig, out: Outbox
    ) -> None:
        self._topic = topic
        self._store = store
        self._cards = cards
        self._config = config
        self._out = out

    def keep(self, verified: Verified, now: float) -> int | None:
        """Write a unit and its device's card; returns its position, None if it is there already."""
        unit = verified.unit
        entry = Entry(
            self._topic,
            unit.author,
            unit.device,
            unit.seq,
            len(unit.tails),
            verified.head,
            now,
            encode_unit(unit),
        )
        position = self._store.log.append(entry)
        if position is not None:
            self._cards.keep(unit.author, unit.device)
        return position

    def pass_over(self, author: AuthorId, device: DeviceId, last: int) -> None:
        """Remember that a chain is wanted from behind this event on, although nothing of it is kept yet."""
        tip = (author, device, last, last, EventId(b""))
        self._store.cells.put(_passed(self._topic), author + device, _encode(tip))

    def due_from(self, author: AuthorId, device: DeviceId, first: int) -> None:
        """Remember from where on a chain is wanted, whatever was remembered before; 0: all of it."""
        space, key = _passed(self._topic), author + device
        before = self._store.cells.get(space, key)
        if not first:
            if before is not None:
                self._store.cells.delete(space, key)
        elif before is None or _decode_tip(before)[2] != first - 1:
            self.pass_over(author, device, first - 1)

    def stored_since(
        self, author: AuthorId, device: DeviceId, first: int, last: int, moment: float
    ) -> int | None:
        """The first number of a range of a chain that was stored at this time or later; None if none was.

        What came long after it was said counts as stored when it was said.
        """
        late = self._came_late(author, device)
        if late is not None and late[1] < moment:
            first = max(first, late[0] + 1)
        if first > last or not self._stored_at(author, device, last, last, moment):
            return None
        low, high = first, last
        while low < high:
            middle = (low + high) // 2
            if self._stored_at(author, device, middle, last, moment):
                high = middle
            else:
                low = middle + 1
        return low

    def came_late(self, author: AuthorId, device: DeviceId, last: int, said_at: float) -> None:
        """Remember that a chain was said up to this number by then, though it was stored later."""
        self._store.cells.put(_late(self._topic), author + device, _encode((last, said_at)))

    def said_at(self, author: AuthorId, device: DeviceId, number: int) -> float | None:
        """When an event of the log was said, going by when it was stored; None if it is not there."""
        found = self._store.log.chain(self._topic, author, device, number, number, 1)
        return self._said_at(found[0], self._came_late(author, device)) if found else None

    def _came_late(self, author: AuthorId, device: DeviceId) -> tuple[int, float] | None:
        kept = self._store.cells.get(_late(self._topic), author + device)
        return None if kept is None else _decode_late(kept)

    @staticmethod
    def _said_at(entry: Entry, late: tuple[int, float] | None) -> float:
        is_late = late is not None and entry.last is not None and entry.last <= late[0]
        return min(entry.stored_at, late[1]) if late is not None and is_late else entry.stored_at

    def _age_ms(self, entry: Entry, chain: Chain | None, late: tuple[int, float] | None, now: float) -> int:
        """Milliseconds since a unit was said: by when it came if that is known, else by when it was kept."""
        said_at = None if chain is None or entry.first is None else chain.moments.at(entry.first)
        return max(0, int((now - (self._said_at(entry, late) if said_at is None else said_at)) * 1000))

    def _stored_at(self, author: AuthorId, device: DeviceId, first: int, last: int, moment: float) -> bool:
        found = self._store.log.chain(self._topic, author, device, first, last, 1)
        return bool(found) and found[0].stored_at >= moment

    def places(self) -> list[ChainPlace]:
        """Every chain that is kept, with where it begins and ends."""
        return [
            ChainPlace(head.author, head.device, head.first, head.last, True)
            for head in self._store.log.heads(self._topic)
        ]

    def page(self, author: AuthorId, device: DeviceId, first: int, last: int) -> list[Unverified]:
        """Units of a chain that overlap a range, as many as a page holds."""
        entries = self._store.log.chain(self._topic, author, device, first, last, self._config.page_units)
        return [decode_unit(entry.raw) for entry in self._page(entries)]

    def read_range(self, request: Resend, now: float | None = None, chain: Chain | None = None) -> Resent:
        """A page with what is kept of a range; it says what is not, and the asker asks again for the rest.

        With a `now` it also says how long ago each unit was said, as far as that is known.
        """
        entries = self._store.log.chain(
            self._topic, request.author, request.device, request.first, request.last, self._config.page_units
        )
        page = self._page(entries)
        covered = request.first
        for entry in page:
            if entry.first is not None and entry.first <= covered:
                covered = max(covered, entry.first + entry.count)
        partial = len(page) < len(entries) or len(entries) == self._config.page_units
        reason = None if covered > request.last or partial else self._why_not(request)
        units = tuple(decode_unit(entry.raw) for entry in page)
        late = self._came_late(request.author, request.device)
        return Resent(
            self._topic,
            request.author,
            request.device,
            request.first,
            request.last,
            units,
            self._cards_of(units),
            True,
            reason,
            () if now is None else tuple(self._age_ms(entry, chain, late, now) for entry in page),
        )

    def read_history(self, request: History, keeps: bool = True) -> HistoryPage:
        """The page of the log that follows a position; who does not keep the topic says just that."""
        if not keeps:
            return HistoryPage(self._topic, request.request, (), (), 0, True, None, False, Reason.NOT_HELD)
        log = self._store.log
        after = request.after
        if after is None:
            after = log.since(self._topic, request.since_ms / 1000) if request.since_ms else 0
        found = log.read(self._topic, after, self._config.page_units)
        page = self._page([entry for _, entry in found])
        units = tuple(decode_unit(entry.raw) for entry in page)
        done = len(page) == len(found) < self._config.page_units
        end = found[len(page) - 1][0] if page else after
        oldest = log.kept(self._topic).oldest
        return HistoryPage(
            self._topic,
            request.request,
            units,
            self._cards_of(units),
            end,
            done,
            None if oldest is None else int(oldest * 1000),
            self.evicted,
            None,
        )

    @property
    def evicted(self) -> bool:
        """Whether anything of this topic was ever evicted here."""
        return self._store.cells.get(_EVICTED, self._topic) is not None

    @property
    def is_empty(self) -> bool:
        """Whether nothing of this topic is held."""
        return self._store.log.kept(self._topic).units == 0

    def evict(self, retention: float | None, quota: int | None, now: float) -> int:
        """Remove what is too old or too much; every unit that goes leaves a record. Returns how many went."""
        log = self._store.log
        gone: list[tuple[Entry, Reason]] = []
        if retention is not None:
            old = log.evict(self._topic, now - retention, None, EVICT_UNITS)
            gone += [(entry, Reason.RETENTION) for entry in old]
        if quota is not None:
            much = log.evict(self._topic, None, quota, EVICT_UNITS)
            gone += [(entry, Reason.QUOTA) for entry in much]
        if gone:
            self._remember([entry for entry, _ in gone])
        for entry, reason in gone:
            self._out.record(self._record(entry, reason))
        return len(gone)

    def _remember(self, gone: list[Entry]) -> None:
        """Note that something was evicted, and how far chains went of which nothing is left.

        A chain that began anew would be a fork, our own above all.
        """
        if not self.evicted:
            self._store.cells.put(_EVICTED, self._topic, b"1")
        left = {head.author + head.device for head in self._store.log.heads(self._topic)}
        for entry in gone:
            key = entry.author + entry.device
            if entry.last is not None and key not in left:
                tip = (entry.author, entry.device, entry.last, entry.last, entry.head)
                self._store.cells.put(_tips(self._topic), key, _encode(tip))

    def _record(self, entry: Entry, reason: Reason) -> Record:
        return Record(
            Kind.EVICTED,
            self._topic,
            entry.head,
            entry.device,
            entry.first,
            entry.count,
            bytes=len(entry.raw),
            reason=reason,
        )

    def _page(self, entries: list[Entry]) -> list[Entry]:
        """As many of the entries as a page holds, and one at least if there is one."""
        room = self._config.page_bytes
        for number, entry in enumerate(entries):
            room -= len(entry.raw)
            if room < 0 and number:
                return entries[:number]
        return entries

    def _cards_of(self, units: tuple[Unverified, ...]) -> tuple[Card, ...]:
        cards: dict[bytes, Card] = {}
        for unit in units:
            card = self._cards.shown(unit.author, unit.device)
            if card is not None:
                cards[unit.author + unit.device] = card
        return tuple(cards.values())

    def _why_not(self, request: Resend) -> Reason:
        for head in self._store.log.heads(self._topic):
            if (head.author, head.device) == (request.author, request.device) and request.first < head.first:
                return Reason.RETENTION if self.evicted else Reason.NOT_HELD
        return Reason.NOT_HELD
