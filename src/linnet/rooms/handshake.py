"""Greetings between the members of a room, by which they also agree on who is a member.

A greeting tells heads and addresses, so it is for peers that members or the state have named. A peer
that only a tracker named is told our identity, and the rest once it has shown that it is a member.
"""

from __future__ import annotations

from linnet.core.errors import RemoteError
from linnet.core.ids import EventId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.messages import Data
from linnet.identity.keys import device_id
from linnet.rooms.event_flow import Passing, Taking
from linnet.rooms.event_types import MEMBER, Membership, member_key
from linnet.rooms.messages import HEADS, ControlPage, Greet, RoomTimer
from linnet.rooms.room_setup import Parts

_CONTACTS = 64
_SHOWN = 16
"""The most earlier membership events of ours that are shown with the present one."""
_OUTSIDE = (Reason.NOT_A_MEMBER, Reason.BANNED)
"""The reasons of peers that take us for an outsider: they may know events that we lack."""


class Handshake:
    """Greets the peers of one room, and resolves disagreements about who is a member."""

    def __init__(self, parts: Parts, passing: Passing, taking: Taking) -> None:
        self._parts = parts
        self._out = parts.out
        self._passing = passing
        self._taking = taking
        self._approached: dict[PeerId, None] = {}
        """The peers that were told only our identity."""

    def greeting(self, answer: bool) -> Greet:
        """Build our greeting: our card, our heads, and contacts."""
        parts = self._parts
        contacts = parts.neighbors.contacts(_CONTACTS)
        heads, control = parts.sync.heads, parts.control.heads[:HEADS]
        card, listens, events = parts.context.card, parts.listens, len(parts.dag)
        return Greet(parts.id, card, listens, heads, control, events, False, contacts, None, answer, True)

    def greet(self, peer: PeerId, answer: bool) -> None:
        """Send a peer our greeting."""
        self._out.send(peer, self.greeting(answer))

    def dismiss(self, peer: PeerId) -> None:
        """Greet a dropped relay; tell it the event that dropped it, and nothing else."""
        parts = self._parts
        card, heads = parts.context.card, (parts.dismissals.relays[peer].event,)
        self._out.send(peer, Greet(parts.id, card, parts.listens, (), heads, 0, False, (), None, answer=True))

    def approach(self, peer: PeerId) -> None:
        """Greet a peer first; tell one that is not known to be in the room only our identity.

        That is a device that only other peers or a tracker have named, or that was revoked since we met it.
        """
        parts = self._parts
        if self._is_of_room(peer):
            self.greet(peer, answer=False)
            return
        self._approached[peer] = None
        card, listens = parts.context.card, parts.listens
        self._out.send(peer, Greet(parts.id, card, listens, (), (), 0, False, (), None, answer=False))

    def _is_of_room(self, peer: PeerId) -> bool:
        """Return whether a device is a relay of the room, or was met and belongs to a present member."""
        view, person = self._parts.control.view(), self._parts.neighbors.person_of(peer)
        if person is None or view.is_relay(peer):
            return view.is_relay(peer)
        return view.is_member(person, device_id(peer))

    def is_due(self, peer: PeerId, greet: Greet) -> bool:
        """Return whether to answer a member's greeting: it wants that, or does not know our heads yet."""
        approached = self._approached.pop(peer, self) is None
        return approached or not greet.answer

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget a peer whose link is gone."""
        self._approached.pop(peer, None)

    def ask_former_member(self, peer: PeerId, greet: Greet, reason: Reason) -> None:
        """Ask a former member for control events by which it may still be a member.

        It is told only the control heads of the event that removed it.
        """
        parts = self._parts
        fact = parts.control.view().get((MEMBER, member_key(greet.card.person)))
        heads = () if fact is None or not parts.control.today.follows_a_join(fact.id) else fact.control
        if not heads or reason not in _OUTSIDE or self._knows_all(greet):
            return
        self._taking.heard_out[peer] = heads
        parts.sync.ask_control(peer, parts.context.card, heads)

    def ask_control(self, peer: PeerId) -> None:
        """Ask a peer that greets for control events: some are damaged here, so members are unknown.

        The events that it sends are signed, and judged as ever; it is told none of our heads.
        """
        parts = self._parts
        self._taking.heard_out[peer] = ()
        parts.sync.ask_control(peer, parts.context.card, ())

    def is_unaware_of_leave(self, peer: PeerId, greet: Greet) -> bool:
        """Return whether a member greets us unaware that we left; if so, mark the leave as still to be told.

        The peers that knew of our leave may have left as well.
        """
        parts = self._parts
        own = parts.control.view().get((MEMBER, member_key(parts.context.author)))
        try:
            parts.guests.check_card(peer, greet.card)
            parts.guests.check_member(greet.card)
        except RemoteError:
            return False
        ours = (parts.context.author, parts.context.device)
        if own is None or (own.sender, own.device) != ours:
            return False
        parts.memory.leaving = parts.control.view().membership(own.sender) is Membership.LEAVE
        return parts.memory.leaving

    def _knows_all(self, greet: Greet) -> bool:
        """Return whether a greeting shows control heads, and we know all of them."""
        return bool(greet.control) and all(map(self._parts.control.knows, greet.control))

    def answer_outside(self, peer: PeerId, greet: Greet) -> None:
        """Refuse a member that takes us for one, and ask for its control events: it may be right."""
        parts = self._parts
        self._taking.refuse(peer, None, Reason.NOT_JOINED, "this node is not in the room")
        try:
            parts.guests.check_card(peer, greet.card)
            parts.guests.check_member(greet.card)
        except RemoteError:
            return
        if self._knows_all(greet):
            return
        self._taking.asked[peer] = None
        parts.sync.ask_control(peer, parts.context.card)

    def answer_refusal(self, peer: PeerId, reason: Reason, now: float) -> None:
        """Show our join to a peer that takes us for an outsider, and ask for the event that removed us."""
        parts = self._parts
        known = peer in parts.guests.by_peer or parts.neighbors.knows(peer)
        if reason not in _OUTSIDE or not (known or parts.control.view().is_relay(peer)):
            return  # Anyone may send such a refusal, and what we would show is for members alone.
        self._taking.heard_out[peer] = parts.control.heads
        self.show_membership(peer, (), now)
        parts.sync.ask_control(peer, parts.context.card)

    def show_membership(self, peer: PeerId, heads: tuple[EventId, ...], now: float) -> None:
        """Show our own membership to a peer that has shown us these control heads.

        That is our join, for example, and the earlier membership events of this device that it builds on: if
        we joined, left and joined again, nobody may have received the earlier events.
        """
        control, device = self._parts.control, self._parts.context.device
        place = MEMBER, member_key(self._parts.context.author)
        own = control.view().get(place)
        if own is None:
            return
        unseen = map(control.fact, control.between(heads))
        told = [fact.id for fact in unseen if (fact.kind, fact.key) == place and fact.device == device]
        before = [event for event in told if control.is_before(event, own.id)]
        for event in (*before[-_SHOWN:], own.id):
            parcel = self._passing.parcel(event)
            if parcel is not None:
                data = Data(parcel.unit, 1, 0, int(now * 1_000_000), parcel.card)
                self._out.committed.send(peer, data)

    def answer_stranger(self, peer: PeerId, data: Data) -> None:
        """Greet a peer that sends its own join: its greeting came before the join and was refused."""
        parts = self._parts
        card = parts.context.cards.find(data.unit.author, data.unit.device)
        view = parts.control.view()
        if card is None or card.device_key != peer or view.is_revoked(card.person, card.device):
            return
        match view.membership(card.person):
            case Membership.JOIN:
                self.greet(peer, answer=False)
            case Membership.KNOCK:
                heads = parts.control.heads[:HEADS]
                page = ControlPage(parts.id, 0, (), (), False, heads, (), None)
                self._out.committed.send(peer, page)
            case _:
                pass


class AnnounceDue(RoomTimer, frozen=True, gc=False):
    """Timer: tell our heads to members of a room."""


class HeadAnnouncements:
    """Tells online members our heads: periodically, and soon after a change."""

    def __init__(self, parts: Parts, handshake: Handshake) -> None:
        self._parts = parts
        self._out = parts.out
        self._handshake = handshake
        self._armed: float | None = None
        """The delay that the timer was set with; None if it is not set."""

    def arm(self, delay: float) -> None:
        """Set the timer of the next announcement, unless it is set to fire sooner."""
        if self._armed is None or self._armed > delay:
            self._armed = delay
            self._out.set_timer(delay, AnnounceDue(self._parts.id))

    def stop(self) -> None:
        """Cancel the timer."""
        self._armed = None
        self._out.cancel_timer(AnnounceDue(self._parts.id))

    def tell_heads(self, now: float) -> None:
        """Greet the members that may not know our heads, and dropped relays again."""
        self._armed = None
        parts = self._parts
        parts.dismissals.give_up(now)
        for peer in parts.dismissals.relays:
            if peer in parts.context.links:
                self._handshake.dismiss(peer)  # The first may be lost.
                parts.sync.ask_control(peer, parts.context.card)  # A relay that left answers "unknown room".
        heads = parts.sync.heads
        for peer in parts.guests.members:
            guest = parts.guests.by_peer[peer]
            if guest.heads != heads or guest.control != parts.control.heads[:HEADS]:
                self._handshake.greet(peer, answer=True)
        for peer in parts.context.links:
            if parts.neighbors.knows(peer) and peer not in parts.guests.by_peer:
                self._handshake.approach(peer)  # The first may be lost.
        self.arm(parts.config.announce_period)
