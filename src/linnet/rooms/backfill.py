"""Backfill: a peer of a room asks for events that it lacks, and another answers page by page; both sides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.heads_walk import Walks
from linnet.delivery.messages import Beyond, Further, Given, Reconcile, Want
from linnet.event.event import Unverified
from linnet.event.signing import unit_head
from linnet.identity.cards import Card
from linnet.rooms.event_flow import Passing, Taking
from linnet.rooms.event_types import MEMBER, Membership, member_key
from linnet.rooms.messages import HEADS, AskControl, ControlPage
from linnet.rooms.room_setup import Parts
from linnet.trace.records import Kind, Record


class Page(NamedTuple):
    """Events in wire form, with their devices' cards; `unknown` ones are not here, `rest` did not fit."""

    units: tuple[Unverified, ...]
    cards: tuple[Card, ...]
    unknown: tuple[EventId, ...]
    rest: int


class BackfillServer:
    """Answers requests for one room's events: gives members all, relays and visitors control events only."""

    def __init__(self, parts: Parts, taking: Taking) -> None:
        self._parts = parts
        self._out = parts.out
        self._taking = taking
        self._walks = Walks(parts.dag)

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget how far a peer has been answered, now that its link is gone."""
        self._walks.forget(peer)

    def handle_want(self, peer: PeerId, want: Want) -> None:
        """Send a member or a relay the events that it asks for by id."""
        guest = self._parts.guests.by_peer.get(peer)
        is_relay = self._parts.control.view().is_relay(peer) if guest is None else guest.relay
        if guest is None and not is_relay:
            self._taking.refuse(peer, None, Reason.NOT_A_MEMBER, "greet first")
            return
        self._out.committed.send(peer, self.build_given(want, control_only=is_relay))

    def handle_beyond(self, peer: PeerId, asked: Beyond) -> None:
        """Send a member the events beyond its heads."""
        guest = self._parts.guests.by_peer.get(peer)
        if guest is None or guest.relay:
            self._taking.refuse(peer, None, Reason.NOT_A_MEMBER, "greet first")
            return
        self._out.committed.send(peer, self.build_further(peer, asked))

    def handle_ask_control(self, peer: PeerId, asked: AskControl, now: float) -> None:
        """Show control events to a peer that wants to join, to relay, or to catch up."""
        contacts = tuple(Contact(relay, named.hints) for relay, named in self._parts.control.view().relays())
        try:
            if peer not in self._parts.guests.by_peer:
                self._parts.guests.check_visitor(peer, asked.card, asked.ticket, now)
                self._check_host(peer, asked.card)
        except RemoteError as error:
            is_known = error.reason in (Reason.BANNED, Reason.NOT_INVITED)  # else its identity is unproven
            removal = self._removal(peer, asked) if is_known else None
            if removal is not None:
                self._out.committed.send(peer, self.build_control_page(asked, (), removal))
                return
            note = "control DAG"
            self._out.record(Record(Kind.REJECTED, self._parts.id, peer=peer, reason=error.reason, note=note))
            self._out.send(peer, self.build_refusal(asked, error.reason))
            return
        self._out.committed.send(peer, self.build_control_page(asked, contacts))

    def _check_host(self, peer: PeerId, card: Card | None) -> None:
        """Raise `RemoteError` if a newcomer asks while we are not in the room: we cannot let anybody in.

        Members and relays are shown our control events all the same.
        """
        view, ours = self._parts.control.view(), self._parts.context.author
        if view.membership(ours) is Membership.JOIN or view.is_relay(peer):
            return
        if card is None or view.membership(card.person) is not Membership.JOIN:
            raise RemoteError(Reason.NOT_JOINED, "this node is not in the room")

    def _removal(self, peer: PeerId, asked: AskControl) -> EventId | None:
        """Return the event that removed the asking person, who may not know of it; None if there is none."""
        card = asked.card
        if card is None or card.device_key != peer:
            return None
        return self._parts.control.removal_of(card.person)

    # The pages.

    def build_given(self, want: Want, control_only: bool) -> Given:
        """Build the answer to a request for events by id; a relay is given control events only."""
        ids = [each for each in want.ids if not control_only or self._parts.control.knows(each)]
        page = self._page(ids)
        unknown = (*page.unknown, *(each for each in want.ids if each not in ids))
        held_by_others = tuple(
            each for each in unknown if control_only or not self._parts.dag.is_settled(each)
        )
        reason = Reason.TOO_LARGE if page.rest else (Reason.NOT_HELD if unknown else None)
        if reason is Reason.NOT_HELD and not held_by_others:
            reason = Reason.RETENTION  # Refused or expired: it is no use to wait for these.
        else:
            unknown = held_by_others  # The settled ones are left to another request.
        return Given(self._parts.id, want.request, page.units, page.cards, unknown, reason)

    def build_further(self, peer: PeerId, asked: Beyond) -> Further:
        """Build the next page of events that lie beyond a peer's heads."""
        ids, more, unknown = self._walks.page(peer, asked.heads, self._parts.config.page_events)
        page = self._page(ids)
        return Further(
            self._parts.id, asked.request, page.units, page.cards, more or page.rest > 0, unknown[:HEADS]
        )

    def build_control_page(
        self, asked: AskControl, relays: tuple[Contact, ...], upto: EventId | None = None
    ) -> ControlPage:
        """Build a page of control events beyond a peer's heads.

        With `upto`, the page has only that event and the events that it builds on.
        """
        control = self._parts.control
        ids = control.between(tuple(each for each in asked.heads if control.knows(each)))
        if upto is not None:
            ids = [each for each in ids if each == upto or control.is_before(each, upto)]
        page = self._page(ids)
        heads = control.heads[:HEADS] if upto is None else (upto,)
        return ControlPage(
            self._parts.id, asked.request, page.units, page.cards, page.rest > 0, heads, relays[:64], None
        )

    def build_refusal(self, asked: AskControl, reason: Reason) -> ControlPage:
        """Build a page that says only why no control events are shown."""
        return ControlPage(self._parts.id, asked.request, (), (), False, (), (), reason)

    def _page(self, ids: Iterable[EventId]) -> Page:
        units: list[Unverified] = []
        cards: dict[bytes, Card] = {}
        unknown: list[EventId] = []
        size, rest = 0, 0
        for each in ids:
            if rest or len(units) >= self._parts.config.page_events:
                rest += 1
                continue
            unit = self._parts.memory.get(each)
            if unit is None:
                unknown.append(each)
                continue
            size += sum(map(len, unit.tails)) + 200
            if units and size > self._parts.config.page_bytes:
                rest += 1
                continue
            units.append(unit)
            card = self._parts.context.cards.find(unit.author, unit.device)
            if card is not None:
                cards[unit.author + unit.device] = card
        return Page(tuple(units), tuple(cards.values()), tuple(unknown), rest)


_ASKED_BACK = 256
"""The number of latest expired events that a member who comes online is asked for."""


class BackfillClient:
    """Handles the answers to our requests for one room's events; rejects those of peers outside the room."""

    def __init__(self, parts: Parts, passing: Passing, taking: Taking) -> None:
        self._parts = parts
        self._passing = passing
        self._taking = taking
        self._shown: dict[PeerId, tuple[dict[EventId, None], int]] = {}
        """For each peer, the heads of the control events it has shown, and its pages without new events."""
        self._gone: dict[EventId, None] = {}
        """Missing events that some peer once had and has deleted."""

    def handle_control_page(self, peer: PeerId, page: ControlPage, now: float) -> None:
        """Take in control events that we asked for; ask for more only as long as something new comes."""
        if peer in self._parts.dismissals:
            if page.reason is Reason.UNKNOWN_ROOM:
                self._parts.dismissals.remove(peer)
            return
        outside = self._taking.heard_out.get(peer)
        if outside is None and not self._taking.heeds(peer):
            self._taking.reject_unasked(peer, "ControlPage")
            return
        before = len(self._parts.control)
        self._taking.take(page.units, page.cards, peer, now)
        self._note_leave_known(page)
        brought = len(self._parts.control) > before
        if not self._wants_more(peer, page, brought):
            self._shown.pop(peer, None)
            return
        # An outsider is shown no more of our heads than we showed it before, or than it has shown us.
        known = self._parts.control.heads if outside is None else outside
        card = self._parts.context.card if outside is not None or peer in self._taking.asked else None
        self._parts.sync.ask_control(peer, card, self.next_heads(peer, page, known))

    def _note_leave_known(self, page: ControlPage) -> None:
        """Note that another peer knows of our leave, if a page shows it."""
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
        """Return the heads to ask the next page beyond: those that this peer has shown, and our own.

        If the histories have diverged, the peer may know none of our heads, and with these alone it would
        begin anew each time.
        """
        tops, _ = self._shown.setdefault(peer, ({}, 0))
        control = self._parts.control
        for unit in page.units:
            event = unit_head(unit)
            if control.knows(event):
                for head in control.fact(event).control:
                    tops.pop(head, None)
                tops[event] = None
        return tuple(dict.fromkeys((*tops, *known)))[:HEADS]

    def _wants_more(self, peer: PeerId, page: ControlPage, brought: bool) -> bool:
        """Return whether to ask for another page: pages bring new events, or may still repeat known ones."""
        tops, barren = self._shown.get(peer, ({}, 0))
        barren = 0 if brought else barren + 1
        self._shown[peer] = tops, barren
        most = 1 + len(self._parts.control) // max(1, len(page.units))
        return page.more and bool(page.units) and barren <= most

    def forget_pages(self, peer: PeerId) -> None:
        """Forget which control events a peer has shown: its link is gone, or it has shown all."""
        self._shown.pop(peer, None)

    def handle_further(self, peer: PeerId, page: Further, now: float) -> None:
        """Take in a page of events beyond our heads."""
        if peer not in self._parts.guests.members:
            self._taking.reject_unasked(peer, "Further")
            return
        self._taking.take(page.units, page.cards, peer, now)
        if not page.more and self._parts.sync.awaits(peer, page.request):
            self._parts.memory.newcomer = False
        self._parts.sync.handle_further(peer, page, self._parts.guests.by_peer.get(peer))

    def handle_given(self, peer: PeerId, page: Given, now: float) -> None:
        """Take in events that we asked for by id, and the ids of those that the peer lacks."""
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
            # One peer says that the event is gone, and no other online peer has it.
            if each in self._gone and order.is_left(each):
                self._passing.pass_on(self._parts.intake.expire(each, now), now)
        self._gone = {each: None for each in self._gone if order.wants(each)}

    def ask_back(self, peer: PeerId, now: float) -> None:
        """Ask a newly linked member for events that relays have let go: it may still have them."""
        if peer not in self._parts.guests.members:
            return
        gone = tuple(self._parts.memory.expired)[-_ASKED_BACK:]
        self._parts.intake.order.ask_back(gone, peer, now)

    def handle_reconcile(self, peer: PeerId, message: Reconcile, now: float) -> None:
        """Answer a step of reconciliation, and fetch the events that it shows we lack."""
        guest = self._parts.guests.by_peer.get(peer)
        if guest is None or guest.relay:
            self._taking.refuse(peer, None, Reason.NOT_A_MEMBER, "greet first")
            return
        lacking = self._parts.sync.handle_reconcile(peer, message, guest)
        wanted = [each for each in lacking if each not in self._parts.intake.failure.shed]
        self._parts.intake.order.fetch(wanted, peer, now)
