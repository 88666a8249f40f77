"""A circle with somebody in it who does not keep to the rules."""

from __future__ import annotations

from collections.abc import Sequence

from tests.rooms.circle import Circle
from tests.rooms.intruder import Intruder, Pen

from linnet.core.effects import AfterCommit
from linnet.core.ids import EventId, TopicId
from linnet.core.messages import Message
from linnet.event.event import Unverified
from linnet.event.signing import decode_unit
from linnet.peer.interface import Connect, Disconnect, Effect, Examine, Input
from linnet.peer.peer import Peer
from linnet.rooms.event_types import Membership
from linnet.rooms.messages import AskControl, ControlPage
from linnet.rooms.relay.relay_room import RelayRoom
from linnet.sim.seeded_random import seeded_identity
from linnet.trace.records import Kind, Record


class Watched(Peer):
    """The shipped machine, with a count of what it is handed and what it asks for."""

    inputs = 0
    effects = 0
    largest = 0
    """Effects that one input led to."""

    def handle(self, event: Input, now: float) -> list[Effect]:
        effects = super().handle(event, now)
        count = sum(len(each.effects) if isinstance(each, AfterCommit) else 1 for each in effects)
        self.inputs += 1
        self.effects += count
        self.largest = max(self.largest, count)
        return effects


class Siege(Circle):
    """Honest members and relays, and intruders."""

    kind = Watched

    # The intruder.

    def intruder(self, name: str = "mal") -> Intruder:
        """Somebody of this name, who is linked to nobody yet."""
        machine = Intruder()
        self.identity[name] = seeded_identity(self.seed, name, self.network.now)
        self._name_of[self.peer(name)] = name
        self.network.add(self.peer(name), machine)
        return machine

    def played(self, name: str) -> Intruder:
        machine = self.network.machine(self.peer(name))
        assert isinstance(machine, Intruder)
        return machine

    def connect(self, name: str, *targets: str) -> None:
        for target in targets:
            self.network.ask(self.peer(name), Connect(self.contact(target)))
        self.run(0.2)

    def disconnect(self, name: str, *targets: str) -> None:
        for target in targets:
            self.network.ask(self.peer(name), Disconnect(self.peer(target)))
        self.run(0.2)

    def tell(self, name: str, target: str, *messages: Message, seconds: float = 0.3) -> list[Message]:
        """Let an intruder say this; what it hears of everyone until a while after."""
        machine = self.played(name)
        machine.take()
        machine.say(self.peer(target), *messages)
        self.network.ask(self.peer(name), Examine())
        self.run(seconds)
        return machine.take()

    def pen(self, name: str) -> Pen:
        """The hand of a person, who knows what the founder knows."""
        pen = Pen(self.identity[name], self.room, int(self.network.now * 1000))
        pen.note(self.log("ann"))
        return pen

    def enter(self, name: str, by: str = "ann", at: Sequence[str] = ("ann",)) -> Pen:
        """Join as anyone would, but by hand, with links to these members; the pen that signed it."""
        self.connect(name, *at)
        ticket = self.ticket(by).ticket
        card = self.identity[name].card
        (page,) = self.tell(name, at[0], AskControl(self.room, 1, (), ticket, card))
        assert isinstance(page, ControlPage)
        pen = Pen(self.identity[name], self.room, int(self.network.now * 1000))
        pen.note(page.units)
        join = pen.member(self.identity[name], Membership.JOIN, page.heads, ticket)
        for target in at:
            self.tell(name, target, pen.data(join), pen.greet((join.head,), (join.head,)))
        self.run(1.0)
        return pen

    # The victims.

    def log(self, name: str) -> list[Unverified]:
        """All events of the room that a member holds."""
        return self.log_of(name, self.room)

    def log_of(self, name: str, room: TopicId) -> list[Unverified]:
        """All events of any room that a member holds."""
        return [decode_unit(entry.raw) for _, entry in self.stores[name].log.read(room, 0, 1_000_000)]

    def relay_room(self, name: str) -> RelayRoom:
        relay = self.rooms(name)._relay
        assert relay is not None
        return relay._rooms[self.room]

    def watched(self, name: str) -> Watched:
        machine = self.network.machine(self.peer(name))
        assert isinstance(machine, Watched)
        return machine

    def cards(self, name: str) -> int:
        """How many devices a node remembers."""
        return len(self.watched(name)._parts.context.cards._cards)

    def control(self, name: str = "ann") -> tuple[EventId, ...]:
        """The heads of the control DAG, as a member or relay knows them."""
        if name.startswith("r"):
            return self.relay_room(name).dag.heads
        return self.room_at(name).control.heads

    def print(self, name: str) -> tuple[object, ...]:
        """All of a node's room that an attack could have changed."""
        if name.startswith("r"):
            relay = self.relay_room(name)
            return relay.dag.heads, len(relay.dag), relay.cache.usage.events, relay.cache.end
        room = self.room_at(name)
        return room.control.heads, room.dag.all_heads, len(room.dag), self.state(name).digest

    def refusals(self, name: str, since: int = 0) -> list[str]:
        """Why a node said no to something, since so many records."""
        kinds = (Kind.REJECTED, Kind.DROPPED)
        rows = self.notes.rows[since:]
        found = [record for _, node, record in rows if node == self.peer(name) and record.kind in kinds]
        return [f"{record.reason}" for record in found]

    def records_since(self, name: str, since: int) -> list[Record]:
        return [record for _, node, record in self.notes.rows[since:] if node == self.peer(name)]
