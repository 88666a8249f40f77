"""The relays of a room: requests to new ones, notice to dropped ones, and a member's preference among them.

A relay is asked whether it will serve the room before the room's state names it. A relay that this device has
dropped is sought until it knows: the state no longer names it, so no other member contacts it.

The choice of relays is the same in every process. Schichtholz 2024 (section 5.4) draws one by a seed; here
the draw depends on no order in which relays are known, and a relay that comes or goes changes the choice of
few rooms (rendezvous hashing).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from hashlib import sha256
from random import Random

import msgspec
from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.identity.cards import CardCheck
from linnet.identity.text import Sort, to_text
from linnet.machine.outbox import Outbox
from linnet.rooms.auth.room_state import View
from linnet.rooms.config import RelayChoice
from linnet.rooms.event_positions import Draft
from linnet.rooms.event_types import (
    MEMBER,
    RELAY,
    JoinRule,
    Member,
    Membership,
    Relay,
    body_of,
    member_key,
)
from linnet.rooms.messages import Greet, RelayAnswer, RelayAsk, RoomTimer
from linnet.rooms.stamps import Stamp
from linnet.trace.records import Kind, Record

_AGAIN = 2.0
"""Seconds until the request is repeated."""


class RelayAnswerDue(RoomTimer, frozen=True, gc=False):
    """Timer: the patience of a command to add a relay has run out."""

    relay: PeerId


class RelayRepeatDue(RoomTimer, frozen=True, gc=False):
    """Timer: a relay that was asked to serve a room has not answered for a while."""

    relay: PeerId


class RelayQuestion:
    """The request to one relay to serve a room."""

    def __init__(
        self,
        request: int,
        contact: Contact,
        greet: Greet,
        contacts: tuple[Contact, ...],
        out: Outbox,
        stamp: Stamp | None = None,
    ) -> None:
        self._stamp = stamp
        self.room = greet.room
        self._out = out
        self._greet = greet
        """Our greeting, which is sent before the request."""
        self.request = request
        self.contact = contact
        self._contacts = contacts
        """The contacts from which the relay can fetch the control DAG."""

    def begin(self, links: dict[PeerId, None], patience: float) -> None:
        """Dial the relay, and ask it if it is linked."""
        self._out.hold(self.contact.peer, self.contact.hints, self._purpose)
        self._out.set_timer(patience, RelayAnswerDue(self.room, self.contact.peer))
        self.ask_again(links)

    def ask(self) -> None:
        """Greet the relay and ask it, now that its link is open."""
        relay = self.contact.peer
        self._out.send(relay, self._greet)
        self._out.send(relay, RelayAsk(self.room, self.request, self._contacts[:64], None, self._stamp))
        self._out.set_timer(_AGAIN, RelayRepeatDue(self.room, relay))

    def ask_again(self, links: dict[PeerId, None]) -> None:
        """Ask again if the relay is linked: the request or the answer may have been lost."""
        if self.contact.peer in links:
            self.ask()

    def end(self) -> None:
        """Release the relay: it has answered, or its time is over."""
        relay = self.contact.peer
        self._out.cancel_timer(RelayAnswerDue(self.room, relay))
        self._out.cancel_timer(RelayRepeatDue(self.room, relay))
        self._out.release(relay, self._purpose)

    def check(self, answer: RelayAnswer, card_check: CardCheck) -> None:
        """Raise `RemoteError` unless the card proves the relay's person, whom the naming will silence."""
        card = answer.card
        if card is None or card.device_key != self.contact.peer or card.person != answer.person:
            raise RemoteError(Reason.UNKNOWN_DEVICE, "the relay shows no card of the person it names")
        card_check(card)

    def draft_events(self, answer: RelayAnswer, view: View) -> list[Draft]:
        """Draft the events that make it a relay: they invite its person, and name it."""
        key = to_text(Sort.DEVICE, self.contact.peer)
        drafts = [Draft(RELAY, key, body_of(Relay(True, answer.person, self.contact.hints)))]
        standing = view.membership(answer.person)
        if standing not in (Membership.JOIN, Membership.INVITE) and view.join_rule() is not JoinRule.PUBLIC:
            drafts.insert(0, Draft(MEMBER, member_key(answer.person), body_of(Member(Membership.INVITE))))
        return drafts

    @property
    def _purpose(self) -> str:
        return f"adding relay {self.room.hex()[:16]}"


class Dismissal(Struct, frozen=True, array_like=True):
    """A relay that was dropped and may not know it yet."""

    hints: tuple[str, ...]
    event: EventId
    """The event that dropped it."""
    since: float


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Dismissal).decode


class Dismissals:
    """The dismissed relays of one room, kept over restarts, for `patience` seconds each."""

    def __init__(
        self, room: TopicId, cells: Cells, patience: float, out: Outbox, only: Container[PeerId] | None
    ) -> None:
        self._room = room
        self._cells = cells
        self._patience = patience
        self._out = out
        self._only = only
        """The peers to which we may have links, or None for any."""
        self._space = f"room.dismissed/{room.hex()}"
        self._purpose = f"dismissed {room.hex()[:16]}"
        self.relays = {PeerId(key): _decode(kept) for key, kept in cells.scan(self._space)}
        self._is_on = False

    def __contains__(self, peer: object) -> bool:
        return peer in self.relays

    def start(self) -> None:
        """Hold links to all dismissed relays."""
        self._is_on = True
        for peer, dismissal in self.relays.items():
            self._out.hold(peer, dismissal.hints, self._purpose)

    def stop(self) -> None:
        """Release all links for now."""
        if self._is_on:
            for peer in self.relays:
                self._out.release(peer, self._purpose)
        self._is_on = False

    def add(self, relay: Contact, event: EventId, now: float) -> None:
        """Seek a relay that was dropped by this event."""
        if self._only is not None and relay.peer not in self._only:
            return
        self.relays[relay.peer] = Dismissal(relay.hints, event, now)
        self._cells.put(self._space, relay.peer, _encode(self.relays[relay.peer]))
        if self._is_on:
            self._out.hold(relay.peer, relay.hints, self._purpose)

    def remove(self, peer: PeerId) -> None:
        """Stop seeking a relay: it knows, or it is a relay of the room again."""
        if self.relays.pop(peer, None) is None:
            return
        self._cells.delete(self._space, peer)
        if self._is_on:
            self._out.release(peer, self._purpose)

    def give_up(self, now: float) -> None:
        """Give up the relays that were sought for `patience` seconds."""
        for peer, dismissal in list(self.relays.items()):
            if dismissal.since + self._patience <= now:
                self._give_up(peer, Reason.TIMEOUT)

    def forget(self) -> None:
        """Give up all relays: the room is forgotten."""
        for peer in list(self.relays):
            self._give_up(peer, Reason.NOT_A_MEMBER)

    def _give_up(self, peer: PeerId, reason: Reason) -> None:
        note, event = "a relay that was dropped was not in reach to hear of it", self.relays[peer].event
        self._out.record(Record(Kind.EXPIRED, self._room, event, peer=peer, reason=reason, note=note))
        self.remove(peer)


_TAG = b"linnet/relay-choice/1"
_SPACE = "rooms"
_SEED = b"relay seed"


class RelaySelection(Struct, frozen=True, gc=False):
    """Orders the relays of one room by the preference of one member."""

    room: TopicId
    choice: RelayChoice
    seed: int
    rotate: float = 0.0
    """The seconds of a turn; 0: there is only one turn."""

    def turn(self, now: float) -> int:
        """Return the number of the turn. Members of a room do not all change turns at the same time."""
        return int((now + self._phase()) // self.rotate) if self.rotate > 0 else 0

    def until_next_turn(self, now: float) -> float | None:
        """Return the seconds that this turn still lasts; None if it never ends."""
        return self.rotate - (now + self._phase()) % self.rotate if self.rotate > 0 else None

    def order(self, relays: Iterable[PeerId], turn: int, rtts: Mapping[PeerId, float]) -> list[PeerId]:
        """Return all of these relays, the preferred first.

        By nearness, a new turn only compares the round-trip times again; otherwise each turn prefers the
        next relay, so that each has had its turn after as many turns as there are relays.
        """
        match self.choice:
            case RelayChoice.NEAREST:
                return sorted(relays, key=lambda relay: (rtts.get(relay, float("inf")), relay))
            case RelayChoice.RANDOM:
                drawn = sorted(relays, key=lambda relay: (self._draw(self.room, relay), relay))
                start = turn
            case RelayChoice.SPREAD:
                # One order for all rooms of this member, and another start in it for each room and turn.
                drawn = sorted(relays, key=lambda relay: (self._draw(b"", relay), relay))
                start = turn + int.from_bytes(self._draw(self.room, b"")[:8], "big")
        if not drawn:
            return []
        start %= len(drawn)
        return drawn[start:] + drawn[:start]

    def _phase(self) -> float:
        return self.rotate * int.from_bytes(self._draw(self.room, b"phase")[:4], "big") / 2**32

    def _draw(self, room: bytes, relay: bytes) -> bytes:
        return sha256(_TAG + b"%d,%d," % (self.seed, len(room)) + room + relay).digest()


def kept_seed(configured: int | None, cells: Cells, rng: Random) -> int:
    """Return the seed of this node's choices: as configured, else drawn at the first start and stored."""
    if configured is not None:
        return configured
    kept = cells.get(_SPACE, _SEED)
    if kept is None:
        kept = rng.getrandbits(64).to_bytes(8, "big")
        cells.put(_SPACE, _SEED, kept)
    return int.from_bytes(kept, "big")
