"""What the use of relays tells a room, and what the room does about it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from linnet.core.ids import EventId
from linnet.rooms.effects import RoomStep
from linnet.rooms.parts import Parts
from linnet.rooms.passing import Passing
from linnet.rooms.relay_notices import (
    Behind,
    Forgot,
    GiveMissing,
    GiveUnsent,
    Kept,
    NotKept,
    Page,
    Parcel,
    RelayNotice,
)
from linnet.rooms.taking import Taking


class Heeding:
    """Acts on the notices of one room's use of relays."""

    def __init__(self, parts: Parts, passing: Passing, taking: Taking) -> None:
        self._parts = parts
        self._passing = passing
        self._taking = taking

    def heed(self, notice: RelayNotice, now: float) -> list[RoomStep]:
        """Do what a notice asks for; what comes of it may hold further notices."""
        relays, passing = self._parts.relays, self._passing
        match notice:
            case Page(relay, _, units, cards, told, tombstones):
                effects = self._taking.take(units, cards, relay, now)
                for receipt in told:
                    effects += passing.heard_receipt(relay, receipt, now)
                for gone in tombstones:
                    effects += self._parts.ledger.expired((gone.event,), relay, gone.reason, now)
                return [*effects, *relays.taken(notice, self._parts.control.heads, now)]
            case GiveUnsent(relay, limit):
                unsent = [each for each in self._parts.ledger.unkept() if relays.takes(relay, each)]
                return [*relays.unsent(relay, self._parcels(unsent[:limit]), len(unsent) > limit, now)]
            case GiveMissing(relay, event, missing):
                return [*relays.provide(relay, event, self._parcels(missing), now)]
            case Behind(relay, heads):
                beyond = self._parts.control.between(heads)[: self._parts.config.page_events]
                shown: list[RoomStep] = [*relays.send_to(relay, self._parcels(beyond), now)]
                if heads:
                    return shown
                # It refused us: it lacks our join, or it knows why we are in the room no longer.
                return [*shown, *self._parts.sync.more_control(relay, self._parts.context.card)]
            case Kept(relay, event):
                if event == self._parts.author.prev:
                    self._parts.memory.leaving = False  # If we have left, this is what we said last.
                return [*self._parts.ledger.at_relay((event,), relay, now)]
            case NotKept(relay, event, reason):
                return [*self._parts.ledger.relay_refused(event, relay, reason, now)]
            case Forgot(relay):
                return [*self._parts.ledger.forgot(relay, now)]
            case _:
                assert_never(notice)

    def _parcels(self, events: Iterable[EventId]) -> list[Parcel]:
        parcels = map(self._passing.parcel, events)
        return [parcel for parcel in parcels if parcel is not None]
