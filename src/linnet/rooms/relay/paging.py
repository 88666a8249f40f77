"""Pages of units: bounded in number and bytes, with the cards that are needed to check them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from linnet.core.ids import EventId
from linnet.delivery.cards import CardBook
from linnet.event.event import Unverified
from linnet.event.signing import decode_unit
from linnet.identity.cards import Card
from linnet.rooms.relay.event_cache import Placed


class Page(NamedTuple):
    """As many units as one message takes, and one at least if there is one."""

    ids: tuple[EventId, ...]
    units: tuple[Unverified, ...]
    last: int
    """The position of the last; 0 if there is none."""
    whole: bool
    """Whether nothing was left out."""


class Pages:
    """How pages are cut."""

    def __init__(self, cards: CardBook, events: int, size: int) -> None:
        self._cards = cards
        self.events = events
        """Units in a page at most."""
        self._size = size

    def of(self, placed: Sequence[Placed], limit: int | None = None) -> Page:
        """The first page of these."""
        most = self.events if limit is None else min(limit, self.events)
        count, size = 0, 0
        for _, entry in placed[:most]:
            size += len(entry.raw)
            if count and size > self._size:
                break
            count += 1
        taken = placed[:count]
        return Page(
            tuple(entry.head for _, entry in taken),
            tuple(decode_unit(entry.raw) for _, entry in taken),
            taken[-1][0] if taken else 0,
            count == len(placed),
        )

    def within(self, units: Iterable[tuple[EventId, Unverified]]) -> tuple[list[Unverified], int]:
        """As many of these units as a page holds, and how many they are."""
        taken: list[Unverified] = []
        size = 0
        for _, unit in units:
            size += sum(map(len, unit.tails))
            if taken and (size > self._size or len(taken) == self.events):
                break
            taken.append(unit)
        return taken, len(taken)

    def cards(self, units: Iterable[Unverified]) -> tuple[Card, ...]:
        """The card of each device that signed one of these."""
        found: dict[bytes, Card] = {}
        for unit in units:
            card = self._cards.find(unit.author, unit.device)
            if card is not None:
                found[unit.author + unit.device] = card
        return tuple(found.values())
