"""What is to happen in a place whose nodes are killed, as it follows from a seed."""

from __future__ import annotations

from random import Random
from typing import TypeAlias

from msgspec import Struct
from tests.node.killed_course import CourseSize, Kill
from tests.node.place_world import HOST


class PlaceSize(CourseSize, frozen=True, kw_only=True):
    """How many of everything; of kills, those of guests: the host is killed twice besides."""

    guests: int
    late: int
    """Of these, those who enter while the others are at it."""
    ejected: int
    announcements: int
    talks: int


class Say(Struct, frozen=True):
    """The host announces something, and perhaps decorates the place."""

    value: str | None


class Talk(Struct, frozen=True):
    """A guest says something to the host."""

    who: str


class Come(Struct, frozen=True):
    """Somebody enters."""

    who: str


class Put(Struct, frozen=True):
    """The host puts somebody out."""

    who: str


class PlaceKill(Kill, frozen=True):
    """A node is killed, perhaps just after it was asked to say something."""

    last_word: bool


Act: TypeAlias = Say | Talk | Come | Put | PlaceKill


def plan(names: list[str], size: PlaceSize, luck: Random) -> list[tuple[float, Act]]:
    """What is to happen at which second."""
    early = names[: size.guests - size.late]

    def at(low: float, high: float) -> float:
        return luck.uniform(low, high) * size.seconds

    def killed(name: str) -> PlaceKill:
        return PlaceKill(name, luck.uniform(0.0, 2.0), luck.random() < 0.5)

    def said() -> Say:
        return Say(str(luck.randrange(100)) if luck.random() < 0.5 else None)

    acts: list[tuple[float, Act]] = [(at(0, 1), said()) for _ in range(size.announcements)]
    acts += [(at(0, 1), Talk(luck.choice(early))) for _ in range(size.talks)]
    acts += [(at(*part), killed(HOST)) for part in ((0.1, 0.5), (0.5, 0.9))]
    acts += [(at(0.05, 0.95), killed(luck.choice(early))) for _ in range(size.kills)]
    acts += [(at(0.2, 0.7), Come(name)) for name in names[size.guests - size.late :]]
    acts += [(at(0.4, 0.9), Put(name)) for name in luck.sample(early, size.ejected)]
    return sorted(acts, key=lambda act: act[0])
