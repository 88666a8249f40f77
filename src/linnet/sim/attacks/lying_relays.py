"""Relays that lie, each kind of lie with what it gains, and what a second path takes from it again.

The liar is the shipped relay, whose answers are changed on their way out; it signs what it says, as every
relay does. Members come one at a time, so that only relays join them: the worst case for a room. Then all are
online together, compare what they have, and so find out who lied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from linnet.core.effects import AfterCommit, Send
from linnet.core.errors import ConfigError
from linnet.core.hello import Hello
from linnet.core.ids import AuthorId, EventId, PeerId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.messages import Given
from linnet.event.event import Event, Unverified
from linnet.event.signing import recall_unit
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import Effect, Input, NodeMachine
from linnet.peer.messages import CODEC
from linnet.rooms.commands import ExamineRooms, ExamineState, RoomsAre, SendToRoom, Sent, StateIs
from linnet.rooms.messages import ControlPage, RelayCursor, RelayForward, ResyncPage
from linnet.rooms.relay_client.evidence import FAULT_NOTES
from linnet.rooms.relay_statements import RelayStatement, sign_statement
from linnet.sim.attacks.figures import AttackFigures
from linnet.sim.clock import START
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.report import Progress, tell_nobody
from linnet.sim.rooms.world import RoomsWorld
from linnet.sim.seeded_random import named_luck
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Kind

E = TypeVar("E")
TURN = 12.0
"""Virtual seconds for which one member is online alone."""
TOGETHER = 150.0
"""Virtual seconds for which all are online at the end."""
_CAUGHT = tuple(note for reason, note in FAULT_NOTES.items() if reason is not Reason.LOST)


class RelayLie(StrEnum):
    """What a lying relay does."""

    WITHHOLD = "withhold"
    """It hides the events of some members from all others, and passes none of them on."""
    REORDER = "reorder"
    """It gives the events of each page in another order."""
    REPLAY = "replay"
    """It goes on showing the state that it had when it began to lie."""
    SPLIT = "split"
    """It shows each half of the members only the events of that half."""


class RelayAttackPlan(Struct, frozen=True):
    """A room, and the relays of it that lie."""

    lie: RelayLie
    peers: int = 8
    relays: int = 2
    liars: int = 1
    messages: int = 48
    seed: int = 1
    latency: str = "aws"
    loss: float = 0.0
    jitter: float = 0.0


class RelayAttackReport(Struct, frozen=True):
    """What came of an attack by relays, beside the same run without it."""

    figures: AttackFigures
    alone: int
    """The due deliveries that came before the members were ever online together."""
    alone_without: int
    """The same without the attack."""
    withheld: int
    """The due deliveries that no relay made, and that came when the members met."""
    right_states: int
    """The members that see the right state of the room at the end."""
    members: int
    caught_at: int
    """The members that know at the end that a relay lies."""
    falsely_caught: int
    """Faults found in honest relays."""

    @property
    def ok(self) -> bool:
        """Whether nothing is lost, all see one state, and no honest relay is accused."""
        is_whole = self.figures.delivered == self.figures.honest_due
        return is_whole and self.right_states == self.members and not self.falsely_caught


class LyingRelay:
    """The shipped machine of a relay, whose answers are changed once it lies."""

    def __init__(self, machine: NodeMachine, identity: Identity, lie: RelayLie, world: AttackedRoom) -> None:
        self._machine = machine
        self._identity = identity
        self._lie = lie
        self._world = world
        self._old: RelayStatement | None = None
        """The last statement from before the lie."""
        self._end: RelayCursor | None = None

    @property
    def hello(self) -> Hello:
        """See `NodeMachine.hello`."""
        return self._machine.hello

    def handle(self, event: Input, now: float) -> list[Effect]:
        """Apply an input as the relay does, and change what it sends."""
        effects = self._machine.handle(event, now)
        if self._world.lies_from is None:
            self._remember(effects)
            return effects
        found: list[Effect] = []
        for effect in effects:
            if isinstance(effect, AfterCommit):
                found.append(AfterCommit(tuple(self._changed_sends(effect.effects))))
            else:
                found += self._changed_sends((effect,))
        return found

    def _changed_sends(self, effects: Iterable[E]) -> Iterator[E | Send[Message]]:
        for effect in effects:
            if not isinstance(effect, Send):
                yield effect
            elif (message := self._changed(effect.peer, effect.message)) is not None:
                yield Send(effect.peer, message)

    def _remember(self, effects: list[Effect]) -> None:
        """Remember the newest signed page, to show its state for ever."""
        for effect in effects:
            for each in effect.effects if isinstance(effect, AfterCommit) else (effect,):
                if isinstance(each, Send) and isinstance(each.message, ResyncPage) and each.message.said:
                    self._old, self._end = each.message.said, each.message.next

    def _changed(self, peer: PeerId, message: Message) -> Message | None:
        """Return what the liar sends instead; None: nothing."""
        match message:
            case ResyncPage() if self._lie is RelayLie.REPLAY:
                return self._old_page(message)
            case ResyncPage():
                return self._page(peer, message)
            case ControlPage():
                units = tuple(each for each in message.units if not self._hides(peer, each))
                return replace(message, units=units)
            case Given():
                hidden = [each for each in message.units if self._hides(peer, each)]
                gone = tuple(_event(each).id for each in hidden)
                shown = tuple(each for each in message.units if each not in hidden)
                reason = Reason.NOT_HELD if gone else message.reason
                return replace(message, units=shown, unknown=(*message.unknown, *gone), reason=reason)
            case RelayForward() if self._lie is not RelayLie.REORDER:
                return None  # It keeps to itself what it should pass on.
            case _:
                return message

    def _page(self, peer: PeerId, page: ResyncPage) -> ResyncPage:
        if self._lie is RelayLie.REORDER:
            units = list(page.units)
            self._world.luck.shuffle(units)
            return replace(page, units=tuple(units))
        shown = tuple(each for each in page.units if not self._hides(peer, each))
        said = page.said
        if said is None:
            return replace(page, units=shown)
        held = tuple(each for each in said.held if not self._hides_id(peer, each.event))
        if len(held) < len(said.held):
            self._world.note_lie()
        said = replace(said, held=held)
        return replace(page, units=shown, said=sign_statement(self._identity.device, page.room, said))

    def _old_page(self, page: ResyncPage) -> ResyncPage | None:
        """Return an answer as the relay gave it before it began to lie; it pushes nothing."""
        old, end = self._old, self._end
        if page.after is not None or old is None or end is None or page.said is None:
            return None
        reach = page.said.reach
        self._world.note_lie()
        if reach is None or reach.after > end.position:
            return replace(page, units=(), said=None)
        past = replace(reach, upto=max(reach.after, end.position))
        held = tuple(each for each in page.said.held if each.position <= past.upto)
        said = replace(old, held=held, reach=past, at_ms=page.said.at_ms)
        units = tuple(each for each in page.units if _event(each).id in [one.event for one in held])
        signed = sign_statement(self._identity.device, page.room, said)
        return replace(page, units=units, next=replace(end, position=past.upto), more=False, said=signed)

    def _hides_id(self, peer: PeerId, event: EventId) -> bool:
        known = self._world.events.get(event)
        return known is not None and self._hides_event(peer, known)

    def _hides(self, peer: PeerId, unit: Unverified) -> bool:
        return self._hides_event(peer, _event(unit))

    def _hides_event(self, peer: PeerId, event: Event) -> bool:
        world = self._world
        self._world.events[event.id] = event
        owner = world.person_of(peer)
        if event.author == owner or event.time / 1000 <= (world.lies_from or 0.0):
            return False
        match self._lie:
            case RelayLie.WITHHOLD:
                return event.author in world.victims
            case RelayLie.REPLAY:
                return True
            case RelayLie.SPLIT:
                return owner is not None and world.side_of(owner) != world.side_of(event.author)
            case _:
                return False


def _event(unit: Unverified) -> Event:
    return recall_unit(unit).events[0]


class _Counted:
    """A machine whose sent bytes are counted."""

    def __init__(self, machine: NodeMachine, count: Callable[[int], None]) -> None:
        self._machine = machine
        self._count = count

    @property
    def hello(self) -> Hello:
        """See `NodeMachine.hello`."""
        return self._machine.hello

    def handle(self, event: Input, now: float) -> list[Effect]:
        """Apply an input, and count what is sent."""
        effects = self._machine.handle(event, now)
        for effect in effects:
            for each in effect.effects if isinstance(effect, AfterCommit) else (effect,):
                if isinstance(each, Send):
                    self._count(len(CODEC.encode(each.message)))
        return effects


class AttackedRoom(RoomsWorld):
    """A room with relays that may lie, and members who come one at a time."""

    def __init__(self, plan: RelayAttackPlan, is_attacked: bool, trace: ColumnTrace) -> None:
        self.plan = plan
        self._is_attacked = is_attacked
        self.lies_from: float | None = None
        """When the liars began to lie, by their clocks."""
        self.lied_at: float | None = None
        """When the first event was hidden, in seconds of the run."""
        self.events: dict[EventId, Event] = {}
        self.victims: tuple[AuthorId, ...] = ()
        self.luck = named_luck(plan.seed, "lying relays")
        self.sent = {True: 0, False: 0}
        """The bytes that liars sent, and all others."""
        links = LinkModel(named_latency(plan.latency), plan.jitter, plan.loss)
        super().__init__(plan.seed, plan.peers, plan.relays, links, trace)
        people = [self.identities[name].author for name in self.peers]
        self.victims = tuple(people[1::3])

    @property
    def liars(self) -> list[str]:
        """The relays that lie, or would without the attack be honest."""
        return self.relays[: self.plan.liars]

    def configured(self, name: str) -> PeerConfig:
        """Let members use two relays at the same time, so that one liar is not their only path."""
        config = super().configured(name)
        return replace(config, rooms=replace(config.rooms, relays_at_once=2))

    def machine(self, name: str) -> NodeMachine:
        """Make the machine of a node; liars lie once they have begun."""
        machine: NodeMachine = super().machine(name)
        is_liar = name in self.liars
        if is_liar and self._is_attacked:
            machine = LyingRelay(machine, self.identities[name], self.plan.lie, self)

        def count(size: int) -> None:
            self.sent[is_liar] += size

        return _Counted(machine, count)

    def person_of(self, peer: PeerId) -> AuthorId | None:
        """Return the person of a node."""
        name = self.names.get(peer)
        return None if name is None else self.identities[name].author

    def side_of(self, person: AuthorId) -> int:
        """Return the half of the members to which a person belongs; relays see everything of one half."""
        names = [name for name in self.peers if self.identities[name].author == person]
        return self.peers.index(names[0]) % 2 if names else 0

    def note_lie(self) -> None:
        """Note when the first event was hidden."""
        if self.lied_at is None:
            self.lied_at = self.network.elapsed


class _Outcome(Struct):
    """What came of one run."""

    said: dict[EventId, tuple[str, float]]
    world: AttackedRoom
    trace: ColumnTrace
    alone: int = 0

    def seen(self, name: str, event: EventId) -> float | None:
        """Return when an event was handed to a member's application."""
        return self.world.seen.get(name, {}).get(event)

    def due(self) -> int:
        """Return the number of deliveries that are due."""
        return len(self.said) * (len(self.world.peers) - 1)

    def delivered(self) -> int:
        """Return how many of them were made."""
        return sum(
            self.seen(name, event) is not None
            for event, (author, _) in self.said.items()
            for name in self.world.peers
            if name != author
        )

    def worst(self) -> float:
        """Return the longest time from an event to its delivery."""
        times = [
            seen - at
            for event, (author, at) in self.said.items()
            for name in self.world.peers
            if name != author and (seen := self.seen(name, event)) is not None
        ]
        return max(times, default=0.0)


def run_relay_attack(
    plan: RelayAttackPlan, trace: ColumnTrace | None = None, progress: Progress = tell_nobody
) -> RelayAttackReport:
    """Run a room with lying relays, and the same room without; equal plans give equal reports."""
    if not 1 <= plan.liars <= plan.relays:
        raise ConfigError(f"{plan.liars} of {plan.relays} relays cannot lie: give --relays and --liars")
    progress(0.0, "without the attack")
    without = _run(plan, False, ColumnTrace())
    progress(0.5, f"with the attack: {plan.lie}")
    attacked = _run(plan, True, ColumnTrace() if trace is None else trace)
    world = attacked.world
    told, caught, false = _caught(attacked)
    since = None if told is None or world.lied_at is None else max(0.0, told - START - world.lied_at)
    figures = AttackFigures(
        attack=plan.lie.value,
        share=plan.liars / plan.relays,
        honest_due=attacked.due(),
        delivered=attacked.delivered(),
        delivered_without=without.delivered(),
        worst_seconds=attacked.worst(),
        told_after_seconds=since,
        attacker_bytes=world.sent[True],
        honest_bytes=world.sent[False],
    )
    return RelayAttackReport(
        figures,
        attacked.alone,
        without.alone,
        without.alone - attacked.alone,
        _right_states(world),
        len(world.peers),
        caught,
        false,
    )


def _run(plan: RelayAttackPlan, is_attacked: bool, trace: ColumnTrace) -> _Outcome:
    world = AttackedRoom(plan, is_attacked, trace)
    world.set_up()
    world.network.run(world.network.elapsed + 30.0)
    for name in world.peers:
        world.offline(name)
    world.lies_from = world.network.now
    outcome = _Outcome({}, world, trace)
    order = list(world.peers)
    for number in range(plan.messages):
        if number % len(order) == 0:
            world.luck.shuffle(order)
        _speak(outcome, order[number % len(order)], number)
    for name in order:  # Each comes once more, when all is said.
        world.online(name)
        world.network.run(world.network.elapsed + TURN)
        world.offline(name)
    outcome.alone = outcome.delivered()
    for name in world.peers:
        world.online(name)
    world.network.run(world.network.elapsed + TOGETHER)
    return outcome


def _speak(outcome: _Outcome, name: str, number: int) -> None:
    """Let a member come, read, say something, and go."""
    world = outcome.world
    world.online(name)
    world.network.run(world.network.elapsed + TURN / 2)
    at = world.network.elapsed
    sent = world.obtain(name, SendToRoom(world.room, (f"message {number}".encode(),)), Sent)
    outcome.said[sent.ids[0]] = (name, at)
    world.network.run(world.network.elapsed + TURN / 2)
    world.offline(name)


def _caught(outcome: _Outcome) -> tuple[float | None, int, int]:
    """Return when the first liar was caught, who knows it, and the faults found in honest relays."""
    world = outcome.world
    liars = {world.peer(name) for name in world.liars}
    members, false = set(), 0
    for name in world.peers:
        rooms = world.obtain(name, ExamineRooms(), RoomsAre).rooms
        for relay in (each for room in rooms for each in room.relays):
            if relay.fault is None:
                continue
            if relay.relay in liars:
                members.add(name)
            else:
                false += 1
    told = [
        row.time
        for row in outcome.trace.rows()
        if row.kind == Kind.REJECTED and row.note in _CAUGHT and row.peer in liars
    ]
    return min(told, default=None), len(members), false


def _right_states(world: AttackedRoom) -> int:
    """Count the members that see the state that most see, at the end."""
    digests = [world.obtain(name, ExamineState(world.room), StateIs).digest for name in world.peers]
    return max(map(digests.count, digests))
