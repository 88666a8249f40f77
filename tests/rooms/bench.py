"""One member's machine on a bench: others are played by hand, and may forge what they like."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any, TypeVar

from linnet.core.effects import AfterCommit, Deliver, Reply, Send
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.inputs import Asked, LinkDown, LinkUp, Received, TimerFired
from linnet.core.limits import FRAME_BYTES
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.messages import Data
from linnet.event.event import Event, Spot, Tail, Verified
from linnet.event.signing import sign_unit
from linnet.identity.text import Sort, to_text
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import AnyCommand, Effect, Handed, Input, Promise, Start
from linnet.peer.messages import PROTOCOLS
from linnet.peer.peer import Peer
from linnet.rooms.commands import CreateRoom, ReadRoom, RoomMade, Sent
from linnet.rooms.config import RoomsConfig
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
from linnet.rooms.invitations import Ticket, issue_ticket
from linnet.rooms.messages import Greet
from linnet.rooms.part import Rooms
from linnet.rooms.room import Room
from linnet.sim.clock import START
from linnet.sim.seeded_random import seeded_identity
from linnet.sim.signature_cache import RememberingCardCheck, RememberingVerifier
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

M = TypeVar("M")
_verifier = RememberingVerifier()
_card_check = RememberingCardCheck()
Effects = list[Effect | Promise]


class Bench:
    """The machine of ann, who founds a room that others join. Effects are kept until they are looked at."""

    def __init__(
        self,
        *joined: str,
        config: RoomsConfig | None = None,
        rule: JoinRule = JoinRule.INVITE,
        store: MemoryStore | None = None,
    ) -> None:
        self.config = config or RoomsConfig()
        self.now = START
        self.store = store or MemoryStore()
        self.effects: Effects = []
        self._people: dict[str, Identity] = {}
        self._chains: dict[str, tuple[int, EventId | None]] = {}
        self._heights: dict[EventId, int] = {}
        self._requests = 0
        self.peer = self._machine()
        self.ask(Start())
        made = self.ask(CreateRoom("tea", rule=rule, newcomers=None))
        assert isinstance(made, RoomMade)
        self.id = made.room
        self.ask(ReadRoom(1, self.id, 0.0, None, state=True))
        self.join(*joined)

    def _machine(self) -> Peer:
        config = PeerConfig(listens=("tls://ann:1",), rooms=self.config)
        return Peer(config, self.who("ann"), self.store, Random(7), _verifier, _card_check)

    def who(self, name: str) -> Identity:
        if name not in self._people:
            self._people[name] = seeded_identity(1, name, START)
        return self._people[name]

    def link(self, name: str) -> PeerId:
        return self.who(name).peer

    @property
    def rooms(self) -> Rooms:
        return self.peer.parts.rooms

    @property
    def room(self) -> Room:
        room = self.rooms._registry.get(self.id)
        assert room is not None
        return room

    # What happens to the machine.

    def do(self, event: Input) -> Effects:
        """Hand the machine an input; what it promised is performed, since all is committed."""
        effects: Effects = []
        for effect in self.peer.handle(event, self.now):
            effects += effect.effects if isinstance(effect, AfterCommit) else [effect]
        self.store.commit(lambda: None)
        self.effects += effects
        return effects

    def ask(self, command: AnyCommand) -> object | None:
        self._requests += 1
        effects = self.do(Asked(self._requests, command))
        replies = [
            each.result for each in effects if isinstance(each, Reply) and each.request == self._requests
        ]
        return replies[0] if replies else None

    def asked(self, command: AnyCommand) -> Effects:
        """What a command brings about."""
        before = len(self.effects)
        self.ask(command)
        return self.effects[before:]

    def govern(self, kind: str, key: str | None, body: bytes) -> EventId:
        """Ann says what no command says."""
        made, declined = self.room.passing.say([Draft(kind, key, body)], self.now)
        assert declined is None, declined
        self.room.settle(self.now)
        self.room.out.clear()
        self.store.commit(lambda: None)
        return made[0].head

    def name_relay(self, name: str, *hints: str) -> EventId:
        """Ann names a relay, without asking it."""
        who = self.who(name)
        return self.govern(RELAY, to_text(Sort.DEVICE, who.peer), body_of(Relay(True, who.author, hints)))

    def brought_about(self, act: Callable[[], object]) -> list[Any]:
        """What the room asks for because of a call by hand."""
        act()
        return self.room.out.take_said()

    def hear(self, name: str, message: Message) -> Effects:
        return self.do(Received(self.link(name), message))

    def fire(self, timer: Timer) -> Effects:
        return self.do(TimerFired(timer))

    def up(self, name: str) -> Effects:
        hello = Hello(WIRE_VERSION, WIRE_VERSION, PROTOCOLS, (), FRAME_BYTES, (), "bench")
        return self.do(LinkUp(self.link(name), hello, False, None))

    def down(self, name: str) -> Effects:
        return self.do(LinkDown(self.link(name), Reason.LOST))

    def restart(self) -> None:
        """A crash, and a new machine over the same store."""
        self.store.rollback()
        self.peer = self._machine()
        self.ask(Start())
        self.effects.clear()

    def do_start(self) -> Effects:
        """What a machine does first."""
        return self.asked(Start())

    # Events of others.

    def forge(
        self,
        name: str,
        kind: str = "message",
        key: str | None = None,
        body: bytes = b"x",
        *,
        deps: Iterable[EventId] | None = None,
        concurrent: Iterable[EventId] | None = None,
        control: Iterable[EventId] | None = None,
        height: int | None = None,
        time: int | None = None,
        topic: TopicId | None = None,
    ) -> Verified:
        """An event that is as it should be, save where something else is asked for."""
        seq, prev = self._chains.get(name, (0, None))
        heads = tuple(self.room.dag.heads if deps is None else deps)
        beside = None if concurrent is None else tuple(concurrent)
        named = tuple(self.room.control.heads if control is None else control)
        refs = (*heads, *(beside or ()), *named, *(() if prev is None else (prev,)))
        high = 1 + max(map(self.height, refs)) if height is None else height
        when = int(self.now * 1000) if time is None else time
        tail = Tail(heads, beside, high, named, kind, key, when, None, body)
        who = self.who(name)
        room = self.id if topic is None else topic
        made = sign_unit(who.device, Spot(room, who.author, who.card.device, seq, prev), (tail,))
        self._chains[name] = (seq + 1, made.head)
        self._heights[made.head] = high
        return made

    def height(self, event: EventId) -> int:
        known = self._heights.get(event)
        return self.room.intake.places.claimed(event) if known is None else known

    def data(self, made: Verified) -> Data:
        device = next(who for who in self._people.values() if who.card.device == made.unit.device)
        return Data(made.unit, 1, 0, int(self.now * 1_000_000), device.card)

    def bring(self, name: str, *made: Verified) -> Effects:
        """A peer brings events, one by one."""
        effects: Effects = []
        for each in made:
            effects += self.hear(name, self.data(each))
        return effects

    def ticket(self, by: str = "ann", person: str | None = None, lasts: float = 3600.0) -> Ticket:
        who = self.who(by)
        whom = None if person is None else self.who(person).author
        expires = int((self.now + lasts) * 1000)
        return issue_ticket(who.device, who.card, self.id, whom, expires, bytes(8))

    def membership(self, by: str, of: str, membership: Membership, ticket: Ticket | None = None) -> Verified:
        body = body_of(Member(membership, None, ticket))
        return self.forge(by, MEMBER, member_key(self.who(of).author), body)

    def join(self, *names: str) -> None:
        """These come in, by a ticket of ann, and are there."""
        for name in names:
            self.up(name)
            self.bring(name, self.membership(name, name, Membership.JOIN, self.ticket()))
            self.greet(name)
        self.effects.clear()

    def greet(self, name: str, answer: bool = False, heads: tuple[EventId, ...] = ()) -> Effects:
        return self.hear(name, self.greeting(name, heads, (), answer))

    def greeting(
        self,
        name: str,
        heads: tuple[EventId, ...] = (),
        control: tuple[EventId, ...] = (),
        answer: bool = False,
    ) -> Greet:
        card, hints = self.who(name).card, (f"tls://{name}:1",)
        return Greet(self.id, card, hints, heads, control, 0, False, (), None, answer)

    def say(self, command: AnyCommand) -> tuple[EventId, ...]:
        sent = self.ask(command)
        assert isinstance(sent, Sent), sent
        return sent.ids

    # What is seen of it.

    def sent(self, name: str, kind: type[M], effects: Effects | None = None) -> list[M]:
        """Messages of a kind that a peer was sent."""
        among = self.effects if effects is None else effects
        to = self.link(name)
        return [
            e.message for e in among if isinstance(e, Send) and e.peer == to and isinstance(e.message, kind)
        ]

    def records(self, kind: Kind, effects: Effects | None = None) -> list[Record]:
        among = self.effects if effects is None else effects
        return [each for each in among if isinstance(each, Record) and each.kind is kind]

    def items(self) -> list[Handed]:
        return [item for each in self.effects if isinstance(each, Deliver) for item in each.items]

    def shown(self) -> list[EventId]:
        """Events that the application was handed."""
        return [item.id for item in self.items() if isinstance(item, Event)]
