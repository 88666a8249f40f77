"""What a room asked others for: pages of events, and their word on what they have not."""

from __future__ import annotations

from linnet.core.ids import EventId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import Further, Given, Reconcile
from linnet.rooms.content import MEMBER, member_key
from linnet.rooms.event_flow import Passing
from linnet.rooms.messages import ControlPage
from linnet.rooms.room_setup import Parts
from linnet.rooms.taking import Taking

_ASKED_BACK = 256
"""Events that were said to be gone, the last ones, for which a member who comes is asked."""
_HEADS = 256
"""Heads that one message names."""


class CatchingUp:
    """Takes the answers to questions of one room. Who is none of it is not listened to."""

    def __init__(self, parts: Parts, passing: Passing, taking: Taking) -> None:
        self._parts = parts
        self._passing = passing
        self._taking = taking
        self._shown: dict[PeerId, tuple[dict[EventId, None], int]] = {}
        """Heads of control events that a peer has shown us, page by page, and pages that brought nothing."""
        self._gone: dict[EventId, None] = {}
        """Events that are missing, and that somebody had once and has no more."""

    def handle_control_page(self, peer: PeerId, page: ControlPage, now: float) -> None:
        """Take control events that we asked for; more are asked for only as long as something new comes."""
        outside = self._taking.heard_out.get(peer)
        if outside is None and not self._taking.heeds(peer):
            self._taking.reject_unasked(peer, "ControlPage")
            return
        before = len(self._parts.control)
        self._taking.take(page.units, page.cards, peer, now)
        self._see_leave(page)
        brought = len(self._parts.control) > before
        if not self._goes_on(peer, page, brought):
            self._shown.pop(peer, None)
            return
        # An outsider is told no more of what we know than it was told, or has told us.
        known = self._parts.control.heads if outside is None else outside
        card = self._parts.context.card if outside is not None or peer in self._taking.asked else None
        self._parts.sync.ask_control(peer, card, self.next_heads(peer, page, known))

    def _see_leave(self, page: ControlPage) -> None:
        """If we have left: whether this peer knows it."""
        parts = self._parts
        leave = parts.control.view().get((MEMBER, member_key(parts.context.author)))
        if not parts.memory.leaving or leave is None:
            return
        heads = filter(parts.control.knows, page.heads)
        if any(head == leave.id or parts.control.is_before(leave.id, head) for head in heads):
            parts.memory.leaving = False

    def next_heads(
        self, peer: PeerId, page: ControlPage, known: tuple[EventId, ...] = ()
    ) -> tuple[EventId, ...]:
        """From which heads on the next page is asked for: what this peer has shown, and what is known here.

        It may know none of our own heads, if we have gone on apart; then it would begin anew each time.
        """
        tops, _ = self._shown.setdefault(peer, ({}, 0))
        control = self._parts.control
        for unit in page.units:
            event = self._parts.intake.head(unit)
            if control.knows(event):
                for head in control.fact(event).control:
                    tops.pop(head, None)
                tops[event] = None
        return tuple(dict.fromkeys((*tops, *known)))[:_HEADS]

    def _goes_on(self, peer: PeerId, page: ControlPage, brought: bool) -> bool:
        """Whether there is more to come: as long as pages bring something, or may be about what we have."""
        tops, barren = self._shown.get(peer, ({}, 0))
        barren = 0 if brought else barren + 1
        self._shown[peer] = tops, barren
        most = 1 + len(self._parts.control) // max(1, len(page.units))
        return page.more and bool(page.units) and barren <= most

    def forget_pages(self, peer: PeerId) -> None:
        """Forget what a peer has shown of the control events: its link is gone, or it has shown all."""
        self._shown.pop(peer, None)

    def handle_further(self, peer: PeerId, page: Further, now: float) -> None:
        """Take a page of what lies beyond our heads."""
        if peer not in self._parts.guests.members:
            self._taking.reject_unasked(peer, "Further")
            return
        self._taking.take(page.units, page.cards, peer, now)
        if not page.more and self._parts.sync.awaits(peer, page.request):
            self._parts.memory.newcomer = False
        self._parts.sync.handle_further(peer, page, self._parts.guests.by_peer.get(peer))

    def handle_given(self, peer: PeerId, page: Given, now: float) -> None:
        """Take events that we asked for, and ids of those that this peer has not."""
        if not self._taking.heeds(peer):
            self._taking.reject_unasked(peer, "Given")
            return
        self._taking.take(page.units, page.cards, peer, now)
        order = self._parts.intake.order
        gone = page.reason in (Reason.RETENTION, Reason.QUOTA)
        is_relay = self._parts.control.view().is_relay(peer)
        alone = self._parts.memory.newcomer and is_relay and not self._parts.guests.members
        if gone or alone:
            self._gone |= {each: None for each in page.unknown if order.asks(peer, each)}
        order.handle_answer(peer, page, now, self._parts.sources)
        for each in page.unknown:
            # One says that it is gone, and nobody else who is there has it.
            if each in self._gone and order.is_left(each):
                self._passing.pass_on(self._parts.intake.expire(each, now), now)
        self._gone = {each: None for each in self._gone if order.wants(each)}

    def ask_back(self, peer: PeerId, now: float) -> None:
        """Ask a member who comes for what was said to be gone: it is not lost on a relay's word."""
        if peer not in self._parts.guests.members:
            return
        gone = tuple(self._parts.memory.expired)[-_ASKED_BACK:]
        self._parts.intake.order.ask_back(gone, peer, now)

    def handle_reconcile(self, peer: PeerId, message: Reconcile, now: float) -> None:
        """Answer a step of reconciliation, and fetch what it shows that we lack."""
        guest = self._parts.guests.by_peer.get(peer)
        if guest is None or guest.relay:
            self._taking.refuse(peer, None, Reason.NOT_A_MEMBER, "greet first")
            return
        lacking = self._parts.sync.handle_reconcile(peer, message, guest)
        wanted = [each for each in lacking if each not in self._parts.intake.shed]
        self._parts.intake.order.fetch(wanted, peer, now)
