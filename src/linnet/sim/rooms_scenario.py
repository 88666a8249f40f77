"""What a room scenario is made of, and its course: who is away when, who says what, who is put out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec import Struct

from linnet.peer.interface import Command
from linnet.rooms.commands import SendToRoom, SetLevel, SetMembership, SetState
from linnet.rooms.content import NAME, Membership
from linnet.rooms.results import Sent
from linnet.sim.churn import drawn_churn
from linnet.sim.luck import named_luck
from linnet.sim.rooms_world import FOUNDER, RoomsWorld

MODERATOR = 50
"""The level of those who may ban."""

MUTED = -1
"""The level of somebody who was demoted: too low to say anything."""

_SPOKEN_AT_ONCE = 0.4
"""Share of returns at which somebody speaks before they can know what has happened."""

_LATER = 2.0
"""Seconds until somebody is to be put out again, if no moderator was there to do it."""

_NAMINGS = 20
"""Of so many things that are said, one is the room's name."""


class RoomScenario(Struct, frozen=True):
    """So many peers in one room who come and go, and what goes wrong."""

    peers: int = 20
    relays: int = 3
    messages: int = 200
    """Messages in all, at random times, each from somebody who is online."""
    offline: float = 0.5
    """Share of the time that a peer is away."""
    bans: int = 3
    demotions: int = 2
    seed: int = 1
    loss: float = 0.0
    """Probability that a single message on a link vanishes."""
    jitter: float = 0.0
    partition: float = 0.0
    """Seconds in the middle for which one half of all nodes cannot reach the other."""
    latency: str = "aws"
    gap: float = 1.0
    """Seconds between messages, on average."""
    cycle: float = 60.0
    """Mean seconds from one return of a peer to the next."""
    quiet: float = 120.0
    """Seconds at the end with everybody online and nothing said, before it is judged."""

    @property
    def seconds(self) -> float:
        """How long people come, go and speak."""
        return max(30.0, self.messages * self.gap)


class Course:
    """Plays a scenario over a world that is set up."""

    def __init__(self, scenario: RoomScenario, world: RoomsWorld) -> None:
        self._scenario = scenario
        self._world = world
        self._luck = named_luck(scenario.seed, "course")
        self.requests: list[int] = []
        """All that was asked for."""
        self.banned: dict[str, None] = {}
        self.demoted: dict[str, None] = {}
        self._moderators = [FOUNDER, *world.peers[1 : 1 + scenario.peers // 8]]
        self.began = self.ended = world.network.elapsed

    def appoint(self) -> None:
        """Give some peers the level of a moderator, so that more than one person decides."""
        for name in self._moderators[1:]:
            person = self._world.identities[name].author
            self._world.obtain(FOUNDER, SetLevel(self._world.room, MODERATOR, person=person), Sent)

    def run(self, tell: Callable[[float, str], None]) -> None:
        """Everything up to the end of the quiet time."""
        scenario, world = self._scenario, self._world
        self.began = world.network.elapsed + 10.0
        self.ended = self.began + scenario.seconds
        self._come_and_go()
        spread = named_luck(scenario.seed, "times")
        for number in range(scenario.messages):
            at = spread.uniform(self.began, self.ended)
            world.at(at, partial(self._speak, number))
        for removals, act in ((scenario.bans, self._ban), (scenario.demotions, self._demote)):
            for _ in range(removals):
                at = self.began + spread.uniform(0.15, 0.85) * scenario.seconds
                world.at(at, act)
        self._split()
        steps = 20
        for step in range(1, steps + 1):
            world.network.run(self.began + scenario.seconds * step / steps)
            tell(0.1 + 0.7 * step / steps, "people come, go and speak")
        for name in world.peers:
            world.online(name)
        world.network.run(self.ended + scenario.quiet)

    def _come_and_go(self) -> None:
        scenario, world = self._scenario, self._world
        if not scenario.offline:
            return
        up, down = scenario.cycle * (1 - scenario.offline), scenario.cycle * scenario.offline
        peers = [world.peer(name) for name in world.peers]
        for change in drawn_churn(scenario.seed, peers, self.began, self.ended, up, down):
            name = world.names[change.peer]
            world.at(change.at, partial(self._return, name) if change.up else partial(world.offline, name))

    def _return(self, name: str) -> None:
        self._world.online(name)
        if self._luck.random() < _SPOKEN_AT_ONCE:
            self._ask(name, SendToRoom(self._world.room, (f"{name} is back".encode(),)))

    def _speak(self, number: int) -> None:
        name = self._someone(self._world.peers)
        if name is None:
            return
        room, namer = self._world.room, self._someone(self._moderators)
        if number % _NAMINGS == 0 and namer is not None:
            self._ask(namer, SetState(room, NAME, "", f"name {number}".encode()))
        self._ask(name, SendToRoom(room, (f"message {number} of {name}".encode(),)))

    def _ban(self) -> None:
        actor, target = self._pair()
        if actor is None:
            self._later(self._ban)
        elif target is not None:
            self.banned[target] = None
            person = self._world.identities[target].author
            self._ask(actor, SetMembership(self._world.room, person, Membership.BAN))

    def _demote(self) -> None:
        actor, target = self._pair()
        if actor is None:
            self._later(self._demote)
        elif target is not None:
            self.demoted[target] = None
            person = self._world.identities[target].author
            self._ask(actor, SetLevel(self._world.room, MUTED, person=person))

    def _later(self, act: Callable[[], None]) -> None:
        """No moderator is online: once more in a while, as long as people come and go."""
        at = self._world.network.elapsed + _LATER
        if at < self.ended:
            self._world.at(at, act)

    def _pair(self) -> tuple[str | None, str | None]:
        """A moderator who is online, and somebody to be put out, online or not."""
        actor = self._someone(self._moderators)
        left = [n for n in self._world.peers[1:] if n != actor and n not in self.banned]
        return actor, self._luck.choice(left) if left else None

    def _someone(self, names: list[str]) -> str | None:
        there = [name for name in names if self._world.is_online(name)]
        return self._luck.choice(there) if there else None

    def _ask(self, name: str, command: Command) -> None:
        self.requests.append(self._world.ask(name, command))

    def _split(self) -> None:
        scenario, world = self._scenario, self._world
        if not scenario.partition:
            return
        names = [*world.relays, *world.peers]
        named_luck(scenario.seed, "halves").shuffle(names)
        half = [world.peer(name) for name in names[: len(names) // 2]]
        at = self.began + 0.4 * scenario.seconds
        world.at(at, lambda: world.network.partition([half]))
        world.at(min(self.ended, at + scenario.partition), world.network.heal)
