"""An attacker in a simulated network: it says what it is told to, keeps what it hears, and signs anything.

`Intruder` is a node that has an identity and no manners. `Pen` signs events of a room that need not be
allowed, with the keys that an attacker really has: its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct
from tests.machines import HELLO

from linnet.core.effects import Dial, HangUp, Reply, Send
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.inputs import Asked, LinkDown, LinkUp, Received
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.messages import Data
from linnet.event.event import MESSAGE, Event, Spot, Tail, Unverified, Verified
from linnet.event.signing import recall_unit, sign_unit
from linnet.machine.commands import Done
from linnet.peer.config import Identity
from linnet.peer.interface import Connect, Disconnect, Effect, Examine, Input
from linnet.peer.messages import Needed, Ping, Pong
from linnet.rooms.event_types import MEMBER, Member, Membership, body_of, member_key
from linnet.rooms.invitations import Ticket
from linnet.rooms.messages import Greet

Answer = Callable[[PeerId, Message], Iterable[Message]]
"""What an intruder answers to what it hears."""


class Intruder:
    """A node of the network that does as its test says.

    `Connect` and `Disconnect` open and close links; `Examine` sends what `say` has put aside. It answers
    pings, so that nobody lets go of it for another reason than what it does.
    """

    def __init__(self, answer: Answer | None = None) -> None:
        self.hello = HELLO
        self.links: dict[PeerId, None] = {}
        self.heard: list[tuple[PeerId, Message]] = []
        """All that others said to it, without what is said about links."""
        self.ended: list[Reason] = []
        """Why links to it went down."""
        self.answer = answer
        self._aside: list[tuple[PeerId, Message]] = []

    def say(self, peer: PeerId, *messages: Message) -> None:
        """Put these aside for the next time that it is its turn."""
        self._aside += [(peer, message) for message in messages]

    def take(self) -> list[Message]:
        """What it heard since this was asked last."""
        heard, self.heard = self.heard, []
        return [message for _, message in heard]

    def handle(self, event: Input, now: float) -> list[Effect]:
        """See `NodeMachine.handle`."""
        match event:
            case LinkUp(peer):
                self.links[peer] = None
                return [Send(peer, Needed(True))]
            case LinkDown(peer, reason):
                self.links.pop(peer, None)
                self.ended.append(reason)
            case Received(peer, Ping(number)):
                return [Send(peer, Pong(number))]
            case Received(_, Pong() | Needed()):
                pass
            case Received(peer, message):
                self.heard.append((peer, message))
                answers = () if self.answer is None else self.answer(peer, message)
                return [Send(peer, answer) for answer in answers]
            case Asked(request, Connect(contact)):
                return [Dial(contact.peer, contact.hints, False), Reply(request, Done())]
            case Asked(request, Disconnect(peer)):
                return [HangUp(peer, Reason.NOT_NEEDED), Reply(request, Done())]
            case Asked(request, Examine()):
                aside, self._aside = self._aside, []
                return [*(Send(peer, message) for peer, message in aside), Reply(request, Done())]
            case _:
                pass
        return []


class Pen:
    """One device's hand in one room: chains and heights are right unless the test says otherwise."""

    def __init__(self, identity: Identity, room: TopicId, now_ms: int) -> None:
        self.identity = identity
        self.room = room
        self.now_ms = now_ms
        self.seq = -1
        self.prev: EventId | None = None
        self._heights: dict[EventId, int] = {}

    def note(self, units: Iterable[Unverified]) -> None:
        """Remember the heights of these events, and how far our own chain is."""
        for unit in units:
            event = recall_unit(unit).events[0]
            self._heights[event.id] = event.tail.height or 0
            own = (event.author, event.device) == (self.identity.author, self.identity.card.device)
            if own and event.seq is not None and event.seq > self.seq:
                self.seq, self.prev = event.seq, event.id

    def write(
        self,
        kind: str,
        key: str | None,
        content: Struct | bytes,
        control: Iterable[EventId] | None,
        *,
        deps: Iterable[EventId] | None = None,
        time: int | None = None,
        height: int | None = None,
        fork: bool = False,
        room: TopicId | None = None,
    ) -> Verified:
        """An event with these control heads, and no others as dependencies unless they are given.

        `fork`: as if nothing had been said before it, and nothing will be said after it.
        """
        heads = None if control is None else tuple(control)
        on = heads if deps is None else tuple(deps)
        seq, prev = (-1, None) if fork else (self.seq, self.prev)
        named = (*(heads or ()), *(on or ()), *(() if prev is None else (prev,)))
        if height is None:
            height = 1 + max((self._heights.get(each, 0) for each in named), default=-1)
        body = content if isinstance(content, bytes) else body_of(content)
        tail = Tail(on, None, height, heads, kind, key, self.now_ms if time is None else time, None, body)
        identity, topic = self.identity, self.room if room is None else room
        made = sign_unit(
            identity.device, Spot(topic, identity.author, identity.card.device, seq + 1, prev), (tail,)
        )
        if not fork:
            self.seq, self.prev = seq + 1, made.head
        self._heights[made.head] = height
        return made

    def message(self, body: str, control: Iterable[EventId], **how: int | bool) -> Verified:
        """A message that depends on its control heads alone."""
        return self.write(MESSAGE, None, body.encode(), control, **how)  # type: ignore[arg-type]

    def member(
        self,
        of: Identity,
        membership: Membership,
        control: Iterable[EventId],
        ticket: Ticket | None = None,
        fork: bool = False,
    ) -> Verified:
        """A change of somebody's membership."""
        content = Member(membership, None, ticket)
        return self.write(MEMBER, member_key(of.author), content, control, fork=fork)

    def data(self, made: Verified) -> Data:
        """An event on its way, with our card."""
        return Data(made.unit, 1, 0, self.now_ms * 1000, self.identity.card)

    def greet(
        self,
        heads: Iterable[EventId] = (),
        control: Iterable[EventId] = (),
        contacts: tuple[Contact, ...] = (),
    ) -> Greet:
        """A greeting, as a member would say it."""
        card = self.identity.card
        return Greet(self.room, card, (), tuple(heads), tuple(control), 1, False, contacts, None, False)


def events_of(units: Iterable[Unverified]) -> list[Event]:
    """The events of some units, unchecked."""
    return [recall_unit(unit).events[0] for unit in units]
