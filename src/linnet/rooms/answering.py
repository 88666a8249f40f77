"""Questions of others about a room: who may ask what."""

from __future__ import annotations

from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import Beyond, Want
from linnet.rooms.access.visiting import removal_of
from linnet.rooms.messages import AskControl
from linnet.rooms.room_setup import Parts
from linnet.rooms.taking import Taking
from linnet.trace.records import Kind, Record


class Answering:
    """Members are told everything, relays what is theirs, visitors how to join; others nothing."""

    def __init__(self, parts: Parts, taking: Taking) -> None:
        self._parts = parts
        self._out = parts.out
        self._taking = taking

    def handle_want(self, peer: PeerId, want: Want) -> None:
        """Give events to somebody who lacks them."""
        guest = self._parts.guests.by_peer.get(peer)
        is_relay = self._parts.control.view().is_relay(peer) if guest is None else guest.relay
        if guest is None and not is_relay:
            self._taking.refuse(peer, None, Reason.NOT_A_MEMBER, "greet first")
            return
        self._out.committed.send(peer, self._parts.serving.want(want, control_only=is_relay))

    def handle_beyond(self, peer: PeerId, asked: Beyond) -> None:
        """Give somebody what lies beyond its heads."""
        guest = self._parts.guests.by_peer.get(peer)
        if guest is None or guest.relay:
            self._taking.refuse(peer, None, Reason.NOT_A_MEMBER, "greet first")
            return
        self._out.committed.send(peer, self._parts.serving.beyond(peer, asked))

    def handle_ask_control(self, peer: PeerId, asked: AskControl, now: float) -> None:
        """Show who may do what to somebody who wants to join, to relay, or to catch up."""
        contacts = tuple(Contact(relay, named.hints) for relay, named in self._parts.control.view().relays())
        try:
            if peer not in self._parts.guests.by_peer:
                self._parts.guests.check_visitor(peer, asked.card, asked.ticket, now)
        except RemoteError as error:
            is_known = error.reason in (Reason.BANNED, Reason.NOT_INVITED)  # else it may not be who it says
            removal = self._removal(peer, asked) if is_known else None
            if removal is not None:
                self._out.committed.send(peer, self._parts.serving.control(asked, (), removal))
                return
            note = "control DAG"
            self._out.record(Record(Kind.REJECTED, self._parts.id, peer=peer, reason=error.reason, note=note))
            self._out.send(peer, self._parts.serving.refuse(asked, error.reason))
            return
        self._out.committed.send(peer, self._parts.serving.control(asked, contacts))

    def _removal(self, peer: PeerId, asked: AskControl) -> EventId | None:
        """The event by which somebody is no longer in the room, who may not have heard of it."""
        card = asked.card
        if card is None or card.device_key != peer:
            return None
        return removal_of(self._parts.control, card.person)
