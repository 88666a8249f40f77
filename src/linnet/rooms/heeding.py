"""What the use of relays tells a room, and what the room does about it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from linnet.core.ids import EventId
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

    def heed(self, notice: RelayNotice, now: float) -> None:
        """Do what a notice asks for; further notices may come of it."""
        parts, relays = self._parts, self._parts.relays
        match notice:
            case Page():
                self._take_page(notice, now)
            case GiveUnsent(relay, limit):
                unsent = [each for each in parts.ledger.unkept() if relays.takes(relay, each)]
                relays.send_unsent(relay, self._parcels(unsent[:limit]), len(unsent) > limit, now)
            case GiveMissing(relay, event, missing):
                relays.send_missing(relay, event, self._parcels(missing), now)
            case Behind(relay, heads):
                beyond = parts.control.between(heads)[: parts.config.page_events]
                relays.send_to(relay, self._parcels(beyond), now)
                if not heads:
                    # It refused us: it lacks our join, or it knows why we are in the room no longer.
                    parts.sync.ask_control(relay, parts.context.card)
            case Kept(relay, event):
                if event == parts.author.prev:
                    parts.memory.leaving = False  # If we have left, this is what we said last.
                parts.ledger.note_kept((event,), relay, now)
            case NotKept(relay, event, reason):
                parts.ledger.note_relay_refusal(event, relay, reason, now)
            case Forgot(relay):
                parts.ledger.note_loss(relay, now)
            case _:
                assert_never(notice)

    def _take_page(self, page: Page, now: float) -> None:
        self._taking.take(page.units, page.cards, page.relay, now)
        for receipt in page.receipts:
            self._passing.handle_receipt(page.relay, receipt, now)
        for gone in page.tombstones:
            self._parts.ledger.note_expiry((gone.event,), page.relay, gone.reason, now)
        self._parts.relays.confirm_page(page, self._parts.control.heads, now)

    def _parcels(self, events: Iterable[EventId]) -> list[Parcel]:
        parcels = map(self._passing.parcel, events)
        return [parcel for parcel in parcels if parcel is not None]
