"""The log as other nodes see it: answers requests page by page, and evicts old events with a record."""

from __future__ import annotations

import msgspec

from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import ChainHead, Entry, Store
from linnet.delivery.chain import Chain
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import CardBook
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
"""Units that one eviction removes at most: a bound on the time it takes."""


def known_heads(topic: TopicId, store: Store, passed: bool = False) -> list[ChainHead]:
    """Return how far every chain of a topic went, even if nothing of the chain is kept any more.

    With `passed`, also chains of which nothing was kept because it was not wanted (`Archive.pass_over`).
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
    """The events that this node keeps of one topic."""

    def __init__(
        self, topic: TopicId, store: Store, cards: CardBook, config: DeliveryConfig, out: Outbox
    ) -> None:
        self._topic = topic
        self._store = store
        self._cards = cards
        self._config = config
        self._out = out

    def keep(self, verified: Verified, now: float) -> int | None:
        """Write a unit and its device's card; return its position, or None if it is there already."""
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
        """Store that a chain is wanted only behind this event, although nothing of it is kept yet."""
        tip = (author, device, last, last, EventId(b""))
        self._store.cells.put(_passed(self._topic), author + device, _encode(tip))

    def due_from(self, author: AuthorId, device: DeviceId, first: int) -> None:
        """Store from which number on a chain is wanted, replacing what was stored; 0: all of it."""
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
        """Return the first number of a range that was stored at this time or later, if any.

        An event that arrived long after it was published counts as stored when it was published.
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
        """Store that a chain was published up to this number by then, though it was stored later."""
        self._store.cells.put(_late(self._topic), author + device, _encode((last, said_at)))

    def said_at(self, author: AuthorId, device: DeviceId, number: int) -> float | None:
        """Return when an event of the log was published, judging by when it was stored, if it is there."""
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
        """Return how many ms ago a unit was published, by its arrival if known, else by its storing."""
        said_at = None if chain is None or entry.first is None else chain.moments.at(entry.first)
        return max(0, int((now - (self._said_at(entry, late) if said_at is None else said_at)) * 1000))

    def _stored_at(self, author: AuthorId, device: DeviceId, first: int, last: int, moment: float) -> bool:
        found = self._store.log.chain(self._topic, author, device, first, last, 1)
        return bool(found) and found[0].stored_at >= moment

    def places(self) -> list[ChainPlace]:
        """Return the range of every chain that is kept."""
        return [
            ChainPlace(head.author, head.device, head.first, head.last, True)
            for head in self._store.log.heads(self._topic)
        ]

    def page(self, author: AuthorId, device: DeviceId, first: int, last: int) -> list[Unverified]:
        """Return the units of a chain that overlap a range, as many as fit a page."""
        entries = self._store.log.chain(self._topic, author, device, first, last, self._config.page_units)
        return [decode_unit(entry.raw) for entry in self._page(entries)]

    def read_range(self, request: Resend, now: float | None = None, chain: Chain | None = None) -> Resent:
        """Return a page of the kept part of a range, and why some is missing; the asker asks for the rest.

        With `now` it also says how long ago each unit was published, as far as that is known.
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
        """Return the page of the log after a position; ``not_held`` if we do not keep the topic."""
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
        """Whether events of this topic were ever evicted here."""
        return self._store.cells.get(_EVICTED, self._topic) is not None

    @property
    def is_empty(self) -> bool:
        """Whether no events of this topic are held."""
        return self._store.log.kept(self._topic).units == 0

    def evict(self, retention: float | None, quota: int | None, now: float) -> int:
        """Evict units that are too old or too many, each with a record; return how many."""
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
        """Note that something was evicted, and how far the chains went that are gone entirely.

        A chain that began anew would be a fork, above all our own.
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
        """Return as many of the entries as fit a page, but at least one if there is one."""
        room = self._config.page_bytes
        for number, entry in enumerate(entries):
            room -= len(entry.raw)
            if room < 0 and number:
                return entries[:number]
        return entries

    def _cards_of(self, units: tuple[Unverified, ...]) -> tuple[Card, ...]:
        cards: dict[bytes, Card] = {}
        for unit in units:
            card = self._cards.current_card(unit.author, unit.device)
            if card is not None:
                cards[unit.author + unit.device] = card
        return tuple(cards.values())

    def _why_not(self, request: Resend) -> Reason:
        for head in self._store.log.heads(self._topic):
            if (head.author, head.device) == (request.author, request.device) and request.first < head.first:
                return Reason.RETENTION if self.evicted else Reason.NOT_HELD
        return Reason.NOT_HELD
