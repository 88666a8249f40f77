"""What is to happen in a room whose nodes are killed, as it follows from a seed."""

from __future__ import annotations

from random import Random
from typing import TypeAlias

from msgspec import Struct
from tests.node.killed_course import CourseSize, Kill

from linnet.sim.rooms.world import FOUNDER

MUTED = -1


class Size(CourseSize, frozen=True, kw_only=True):
    """How many of everything; of kills, those of peers: every relay is killed twice besides."""

    peers: int
    relays: int
    messages: int
    bans: int
    demotions: int

    @property
    def moderators(self) -> int:
        """Peers beside the founder who may ban."""
        return max(1, self.peers // 8)


class Say(Struct, frozen=True):
    """Somebody says something."""

    who: str


class Call(Struct, frozen=True):
    """A moderator names the room."""

    who: str


class Ban(Struct, frozen=True):
    """A moderator bans somebody."""

    who: str
    whom: str


class Rank(Struct, frozen=True):
    """A moderator changes somebody's level."""

    who: str
    whom: str
    level: int


class RoomKill(Kill, frozen=True):
    """A node is killed, perhaps just after or just before it says something."""

    last_word: float | None
    """Seconds before that at which it is still asked to say something."""
    first_word: bool
    """Whether it says something as soon as it is back, before it can know what has happened."""


class Look(Struct, frozen=True):
    """Somebody's ledger is read."""

    who: str


Wish: TypeAlias = Say | Call | Ban | Rank | Look
"""What a node is asked to do."""
Act: TypeAlias = Wish | RoomKill


def plan(seed: int, size: Size) -> list[tuple[float, Act]]:
    """What is to happen at which second."""
    luck = Random(f"crashes {seed}")
    peers = [f"peer{number}" for number in range(size.peers)]
    moderators, others = peers[: 1 + size.moderators], peers[1 + size.moderators :]

    def at(low: float, high: float) -> float:
        return luck.uniform(low, high) * size.seconds

    def killed(name: str) -> RoomKill:
        last_word = luck.uniform(0.0, 0.05) if name in peers and luck.random() < 0.7 else None
        return RoomKill(name, luck.uniform(0.0, 3.0), last_word, name in peers and luck.random() < 0.5)

    acts: list[tuple[float, Act]] = [(at(0, 1), Say(luck.choice(peers))) for _ in range(size.messages)]
    acts += [(at(0.03, 0.97), killed(luck.choice(peers))) for _ in range(size.kills)]
    for number in range(size.relays):
        acts += [(at(*part), killed(f"relay{number}")) for part in ((0.05, 0.5), (0.5, 0.95))]
    for number, whom in enumerate(luck.sample(others, size.bans)):
        when = at(0.1, 0.85)
        acts.append((when, Ban(moderators[number % size.moderators], whom)))
        if luck.random() < 0.7:  # Banned while away, it speaks before it can know.
            acts.append((when - 0.2, RoomKill(whom, luck.uniform(0.3, 1.5), 0.0, True)))
    for _ in range(size.demotions):
        acts.append((at(0.1, 0.85), Rank(FOUNDER, luck.choice(others), MUTED)))
        acts.append((at(0.1, 0.85), Rank(luck.choice(moderators), luck.choice(others), luck.randint(1, 20))))
    if size.moderators > 1:  # One that uses its power just as it loses it.
        when = at(0.5, 0.9)
        acts.append((when, Rank(FOUNDER, moderators[-1], 0)))
        acts.append((when, Ban(moderators[-1], luck.choice(others))))
    acts += [(at(0, 1), Call(luck.choice(moderators))) for _ in range(1 + size.messages // 40)]
    acts += [(at(0.1, 1), Look(luck.choice(peers))) for _ in range(size.peers)]
    return sorted(acts, key=lambda act: act[0])
