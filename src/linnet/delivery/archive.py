"""The log as others see it: what is kept, answered page by page, and evicted with a record."""

from __future__ import annotations

from linnet.core.effects import Send
from linnet.core.ids import AuthorId, DeviceId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Entry, Store
from linnet.delivery.cards import CardBook
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.messages import ChainPlace, History, HistoryPage, Resend, Resent
from linnet.event.event import Unverified, Verified
from linnet.event.signing import decode_unit, encode_unit
from linnet.identity.cards import Card
from linnet.trace.records import Kind, Record

_EVICTED = "evicted"
_EVICT_UNITS = 1024
"""Units that one look for evictions removes: a bound on the time it takes."""


class Archive:
    """What this node keeps of one topic."""

    def __init__(self, topic: TopicId, store: Store, cards: CardBook, config: DeliveryConfig) -> None:
        self._topic = topic
        self._store = store
        self._cards = cards
        self._config = config

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

    def places(self) -> list[ChainPlace]:
        """Every chain that is kept, with where it begins and ends."""
        return [
            ChainPlace(head.author, head.device, head.first, head.last, True)
            for head in self._store.log.heads(self._topic)
        ]

    def units(
        self, author: AuthorId, device: DeviceId, first: int, last: int, limit: int
    ) -> list[Unverified]:
        """Units of a chain that overlap a range."""
        entries = self._store.log.chain(self._topic, author, device, first, last, limit)
        return [decode_unit(entry.raw) for entry in entries]

    def resend(self, peer: PeerId, request: Resend) -> list[Send[Resent]]:
        """Pages with what is kept of a range, the last of which says what is not."""
        entries = self._store.log.chain(
            self._topic, request.author, request.device, request.first, request.last, self._config.page_units
        )
        covered = request.first
        for entry in entries:
            if entry.first is not None and entry.first <= covered:
                covered = max(covered, entry.first + entry.count)
        partial = len(entries) == self._config.page_units  # the asker asks again for the rest
        reason = None if covered > request.last or partial else self._why_not(request)
        pages = self._paged(entries)
        sends = []
        for number, page in enumerate(pages):
            done = number == len(pages) - 1
            units = tuple(decode_unit(entry.raw) for entry in page)
            message = Resent(
                self._topic,
                request.author,
                request.device,
                request.first,
                request.last,
                units,
                self._cards_of(units),
                done,
                reason if done else None,
            )
            sends.append(Send(peer, message))
        return sends

    def history(self, peer: PeerId, request: History) -> list[Send[HistoryPage]]:
        """The page of the log that follows a position."""
        log = self._store.log
        after = request.after
        if after is None:
            after = log.since(self._topic, request.since_ms / 1000) if request.since_ms else 0
        found = log.read(self._topic, after, self._config.page_units)
        page = self._paged([entry for _, entry in found])[0]
        units = tuple(decode_unit(entry.raw) for entry in page)
        done = len(page) == len(found) < self._config.page_units
        end = found[len(page) - 1][0] if page else after
        oldest = log.kept(self._topic).oldest
        message = HistoryPage(
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
        return [Send(peer, message)]

    @property
    def evicted(self) -> bool:
        """Whether anything of this topic was ever evicted here."""
        return self._store.cells.get(_EVICTED, self._topic) is not None

    def evict(self, retention: float | None, quota: int | None, now: float) -> list[Record]:
        """Remove what is too old or too much; every unit that goes leaves a record."""
        records = []
        if retention is not None:
            gone = self._store.log.evict(self._topic, now - retention, None, _EVICT_UNITS)
            records += [self._record(entry, Reason.RETENTION) for entry in gone]
        if quota is not None:
            gone = self._store.log.evict(self._topic, None, quota, _EVICT_UNITS)
            records += [self._record(entry, Reason.QUOTA) for entry in gone]
        if records and not self.evicted:
            self._store.cells.put(_EVICTED, self._topic, b"1")
        return records

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

    def _paged(self, entries: list[Entry]) -> list[list[Entry]]:
        """Entries in pages of bounded bytes; at least one page."""
        pages: list[list[Entry]] = [[]]
        room = self._config.page_bytes
        for entry in entries:
            if pages[-1] and len(entry.raw) > room:
                pages.append([])
                room = self._config.page_bytes
            pages[-1].append(entry)
            room -= len(entry.raw)
        return pages

    def _cards_of(self, units: tuple[Unverified, ...]) -> tuple[Card, ...]:
        cards: dict[bytes, Card] = {}
        for unit in units:
            card = self._cards.find(unit.author, unit.device)
            if card is not None:
                cards[unit.author + unit.device] = card
        return tuple(cards.values())

    def _why_not(self, request: Resend) -> Reason:
        for head in self._store.log.heads(self._topic):
            if (head.author, head.device) == (request.author, request.device) and request.first < head.first:
                return Reason.RETENTION if self.evicted else Reason.NOT_HELD
        return Reason.NOT_HELD
