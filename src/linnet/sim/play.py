"""Playing traffic in simulation: the shipped node, a virtual clock, and the merged log of what it did."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.rooms.commands import RoomCommand, SendToRoom, SetLevel, SetMembership, SetState
from linnet.rooms.content import Membership
from linnet.rooms.results import Sent
from linnet.sim.clock import START
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.merged_log import MergedLog, merge
from linnet.sim.rooms_world import RoomsWorld
from linnet.sim.traffic import Action, Do, Traffic
from linnet.trace.canonical import microseconds, seconds
from linnet.trace.columns import ColumnTrace

SETTLE = 5.0
"""Virtual seconds between the set-up and the first action."""

QUIET = 10.0
"""Virtual seconds after the last action."""


class Outcome(Struct, frozen=True):
    """What became of one action."""

    number: int
    """Its place in the file."""
    action: str
    user: str
    at: float
    """Seconds since the replay began."""
    events: tuple[str, ...] = ()
    """Ids of what was said, in hex."""
    refused: str | None = None
    """Why the user's own node declined it, if it did."""


class Played(Struct, frozen=True):
    """A run: what was done, what came of it, what everybody recorded."""

    traffic: Traffic
    outcomes: tuple[Outcome, ...]
    log: MergedLog
    trace_sha256: str | None
    """Of a simulation, whose trace is the same each time."""

    def event(self, action: int) -> int | None:
        """The number in the log of the first event that the action at this place said."""
        for outcome in self.outcomes:
            if outcome.number == action and outcome.events:
                return self.log.number(bytes.fromhex(outcome.events[0]))
        return None


class Player:
    """Plays one traffic file over a world that is set up."""

    def __init__(self, traffic: Traffic, world: RoomsWorld) -> None:
        self._traffic = traffic
        self._world = world
        self._asked: dict[int, int] = {}
        """Requests by the place of their action."""
        self._began = 0.0
        self._times: dict[int, float] = {}

    def run(self, tell: Callable[[float, str], None]) -> tuple[Outcome, ...]:
        """Do everything, and wait a while."""
        world, network = self._world, self._world.network
        for name in self._traffic.away:
            world.offline(name)
        network.run(network.elapsed + SETTLE)
        self._began = at = network.elapsed
        for number, action in enumerate(self._traffic.actions):
            network.run(at)
            tell(number / len(self._traffic.actions), f"{action.do} {action.user}")
            self._times[number] = at - self._began
            self._perform(number, action)
            at += action.pause
        network.run(at + QUIET)
        return tuple(self._outcome(number, action) for number, action in enumerate(self._traffic.actions))

    @property
    def began(self) -> float:
        """Unix time of the first action, as the trace has it."""
        return seconds(microseconds(START + self._began))

    def _perform(self, number: int, action: Action) -> None:
        world = self._world
        match action.do:
            case Do.ONLINE:
                world.online(action.user)
            case Do.OFFLINE:
                world.offline(action.user)
            case Do.ONLINE_BATCH:
                for name in action.users:
                    (world.online if action.online else world.offline)(name)
            case Do.RESYNC_RELAY:
                world.prefer(action.user, action.relay or "")
            case _:
                self._asked[number] = world.ask(action.user, self._command(action))

    def _command(self, action: Action) -> RoomCommand:
        room, people = self._world.room, self._world.identities
        target = None if action.target is None else people[action.target].author
        match action.do:
            case Do.MESSAGE:
                return SendToRoom(room, (action.content.encode(),))
            case Do.BAN if target is not None:
                return SetMembership(room, target, Membership.BAN)
            case Do.POWER_LEVEL_EVENT:
                return SetLevel(room, action.level, kind=action.kind)
            case Do.POWER_LEVEL_USER:
                return SetLevel(room, action.level, person=target)
            case Do.STATE:
                return SetState(room, action.kind or "", action.key, action.content.encode())
            case _:
                raise ValueError(f"{action.do} is no command")

    def _outcome(self, number: int, action: Action) -> Outcome:
        at, answers = self._times[number], self._world.network.answers
        request = self._asked.get(number)
        if request is None:
            return Outcome(number, action.do, action.user, at)
        match answers.get(request):
            case Sent(_, ids):
                return Outcome(number, action.do, action.user, at, tuple(id.hex() for id in ids))
            case Declined(reason):
                return Outcome(number, action.do, action.user, at, refused=str(reason))
            case _:
                return Outcome(number, action.do, action.user, at, refused=str(Reason.TIMEOUT))


def play(
    traffic: Traffic,
    seed: int = 1,
    latency: str = "constant:20",
    progress: Callable[[float, str], None] | None = None,
) -> Played:
    """Play traffic in simulation. Equal seeds give equal runs."""
    trace = ColumnTrace()
    world = RoomsWorld(seed, traffic.peers, traffic.relays, LinkModel(named_latency(latency)), trace)
    world.set_up()
    for name, relay in traffic.relay_of.items():
        world.prefer(name, relay)
        world.offline(name)
        world.online(name)
    player = Player(traffic, world)
    outcomes = player.run(progress or (lambda done, what: None))
    relays = [world.peer(name) for name in world.relays]
    log = merge(trace.rows(), world.names, relays, topic=world.room, begin=player.began)
    return Played(traffic, outcomes, log, trace.sha256())
