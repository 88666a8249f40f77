"""How members find each other in a room: greetings, and what if two differ about who is in it.

A greeting tells heads and where others may be dialled, so it is for those whom members or the state have
named. Whoever a tracker names only is told who we are, and the rest once it has shown that it is a member.
"""

from __future__ import annotations

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.delivery.messages import Data
from linnet.identity.keys import device_id
from linnet.rooms.content import MEMBER, Membership, member_key
from linnet.rooms.event_flow import Passing
from linnet.rooms.messages import ControlPage, Greet
from linnet.rooms.room_setup import Parts
from linnet.rooms.taking import Taking

HEADS = 256
_CONTACTS = 64
_OUTSIDE = (Reason.NOT_A_MEMBER, Reason.BANNED)
"""Refusals of those who take us for a stranger: they may know more of it than we."""


class Meeting:
    """Greetings of one room."""

    def __init__(self, parts: Parts, passing: Passing, taking: Taking) -> None:
        self._parts = parts
        self._out = parts.out
        self._passing = passing
        self._taking = taking
        self._approached: dict[PeerId, None] = {}
        """Peers that were told only who we are."""

    def greeting(self, answer: bool) -> Greet:
        """Who we are, and how far we are."""
        parts = self._parts
        contacts = parts.neighbors.contacts(_CONTACTS)
        heads, control = parts.sync.heads, parts.control.heads[:HEADS]
        card, listens, events = parts.context.card, parts.listens, len(parts.dag)
        return Greet(parts.id, card, listens, heads, control, events, False, contacts, None, answer)

    def greet(self, peer: PeerId, answer: bool) -> None:
        """Tell a peer who we are, and how far we are."""
        self._out.send(peer, self.greeting(answer))

    def approach(self, peer: PeerId) -> None:
        """Greet somebody first: who is not known to be of the room now is told only who we are.

        A device that was only told of, or that a tracker has named, or that was revoked since.
        """
        parts = self._parts
        if self._is_of_room(peer):
            self.greet(peer, answer=False)
            return
        self._approached[peer] = None
        card, listens = parts.context.card, parts.listens
        self._out.send(peer, Greet(parts.id, card, listens, (), (), 0, False, (), None, answer=False))

    def _is_of_room(self, peer: PeerId) -> bool:
        """Whether a device is a relay, or that of a member as we met it."""
        view, person = self._parts.control.view(), self._parts.neighbors.person_of(peer)
        if person is None or view.is_relay(peer):
            return view.is_relay(peer)
        is_member = view.membership(person) is Membership.JOIN
        return is_member and not view.is_revoked(person, device_id(peer))

    def is_due(self, peer: PeerId, greet: Greet) -> bool:
        """Whether a member that greets is to be told how far we are: it asks for it, or was not told yet."""
        approached = self._approached.pop(peer, self) is None
        return approached or not greet.answer

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget a peer whose link is gone."""
        self._approached.pop(peer, None)

    def hear_out(self, peer: PeerId, greet: Greet, reason: Reason) -> None:
        """Ask who was of the room once for control events by which it may still be.

        It is told no other heads of ours than those by which it was put out.
        """
        parts = self._parts
        fact = parts.control.view().get((MEMBER, member_key(greet.card.person)))
        heads = () if fact is None or not parts.control.follows_a_join(fact.id) else fact.control
        if not heads or reason not in _OUTSIDE or self._knows_all(greet):
            return
        self._taking.heard_out[peer] = heads
        parts.sync.ask_control(peer, parts.context.card, heads)

    def ask_control(self, peer: PeerId) -> None:
        """Ask whoever greets for control events: some are damaged here, and who is of the room is not known.

        What it shows is signed, and judged as ever; it is told nothing of what we know.
        """
        parts = self._parts
        self._taking.heard_out[peer] = ()
        parts.sync.ask_control(peer, parts.context.card, ())

    def does_not_know(self, peer: PeerId, greet: Greet) -> bool:
        """Whether a member takes us for one because it has not heard that we left: then we are to be found.

        Whoever heard of it before may have left as well.
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
        """Whether who greets knows no control event that we lack; who tells only who it is may."""
        return bool(greet.control) and all(map(self._parts.control.knows, greet.control))

    def answer_outside(self, peer: PeerId, greet: Greet) -> None:
        """Refuse a member that takes us for one, and ask it: whoever put us out may have had no right to."""
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
        """Show our join to a peer that takes us for a stranger, and ask it: it may know that we are out."""
        parts = self._parts
        known = peer in parts.guests.by_peer or parts.neighbors.knows(peer)
        if reason not in _OUTSIDE or not (known or parts.control.view().is_relay(peer)):
            return  # Anyone may say that: what we would show is for members alone.
        self._taking.heard_out[peer] = parts.control.heads
        self.show_join(peer, now)
        parts.sync.ask_control(peer, parts.context.card)

    def show_join(self, peer: PeerId, now: float) -> None:
        """Show the event by which we are in the room."""
        join = self._parts.control.view().get((MEMBER, member_key(self._parts.context.author)))
        parcel = None if join is None else self._passing.parcel(join.id)
        if parcel is not None:
            self._out.send(peer, Data(parcel.unit, 1, 0, int(now * 1_000_000), parcel.card))

    def answer_stranger(self, peer: PeerId, data: Data) -> None:
        """Greet who brings its own join: it greeted before, in the faster lane, in vain; who knocks waits."""
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
