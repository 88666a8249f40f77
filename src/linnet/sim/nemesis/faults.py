"""The faults of the open world: a plan that follows from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from random import Random

from msgspec import Struct

HOUR = 3600.0
YEAR = 365 * 24 * HOUR
JUMPS = (-3 * YEAR, -5 * HOUR, -HOUR, HOUR, 5 * HOUR, 3 * YEAR)
"""Seconds by which clocks are wrong."""

LEAST = 3
MOST = 6
"""The least and most faults of one plan."""


class Fault(StrEnum):
    """One kind of fault."""

    MOVE = "restarted at another address"
    RESTART_ALL = "all restarted at once"
    KILL = "killed, as by kill -9"
    PAUSE = "paused"
    PARTITION = "partition"
    LOSS = "loss"
    CLOCK = "clock jumps and comes back"
    FULL_DISK = "full disk"
    DAMAGED_DISK = "damaged disk"
    AWAY = "one that others rely on is away"
    DEAD = "one that others rely on is dead for good"
    REVOKED = "revoked while it lies about time"
    NEWCOMER = "newcomer"
    CHANGE = "state or membership changes"


HARD: tuple[Fault, ...] = tuple(fault for fault in Fault if fault not in (Fault.NEWCOMER, Fault.CHANGE))
"""Faults of which each plan has at least `LEAST`; the others come on top."""


class Cast(Struct, frozen=True):
    """The nodes that faults may strike."""

    nodes: tuple[str, ...]
    """All nodes that take part from the beginning."""
    anchors: tuple[str, ...]
    """The nodes that others rely on: trackers, storage, relays, hosts, rendezvous."""
    spared: tuple[str, ...]
    """Nodes that never die for good, nor get a damaged disk: without them nothing could be judged."""
    fixed: tuple[str, ...]
    """Nodes that never change their address: others have it in their configuration, and nobody could update
    it."""
    newcomers: tuple[str, ...]
    thief: str | None = None
    """The device that is revoked."""


class Strike(Struct, frozen=True):
    """One fault: its time, targets and length."""

    at: float
    fault: Fault
    targets: tuple[str, ...]
    seconds: float
    amount: float = 0.0
    """By how much a clock is wrong, or the share of messages that is lost."""

    def __str__(self) -> str:
        amount = f" {self.amount:g}" if self.amount else ""
        where = ", ".join(self.targets) or "everywhere"
        return f"{self.at:.0f} s: {self.fault}{amount} at {where} for {self.seconds:.0f} s"


def draw_plan(luck: Random, cast: Cast, chosen: Sequence[Fault], begin: float, length: float) -> list[Strike]:
    """Draw faults of these kinds within a time, at least three of the hard ones, in the order of time."""
    hard = [fault for fault in HARD if fault in chosen and (fault is not Fault.REVOKED or cast.thief)]
    kinds: list[Fault] = luck.sample(hard, min(len(hard), luck.randint(LEAST, MOST)))
    if Fault.NEWCOMER in chosen:
        kinds += [Fault.NEWCOMER] * luck.randint(1, len(cast.newcomers))
    if Fault.CHANGE in chosen:
        kinds += [Fault.CHANGE] * luck.randint(2, 5)
    newcomers = list(cast.newcomers)
    strikes = [_draw_strike(luck, cast, kind, begin + luck.random() * length, newcomers) for kind in kinds]
    return sorted(strikes, key=lambda strike: strike.at)


def _draw_strike(luck: Random, cast: Cast, fault: Fault, at: float, newcomers: list[str]) -> Strike:
    seconds = luck.choice((5.0, 20.0, 60.0, 120.0))
    mortal = tuple(name for name in cast.nodes if name not in cast.spared)
    match fault:
        case Fault.MOVE:
            movable = [name for name in cast.nodes if name not in cast.fixed]
            return Strike(at, fault, (luck.choice(movable),), seconds)
        case Fault.RESTART_ALL:
            return Strike(at, fault, cast.nodes, 2.0)
        case Fault.PARTITION:
            side = tuple(name for name in cast.nodes if luck.random() < 0.5) or cast.nodes[:1]
            return Strike(at, fault, side, seconds)
        case Fault.LOSS:
            return Strike(at, fault, (), seconds, luck.choice((0.01, 0.1, 0.3)))
        case Fault.CLOCK:
            return Strike(at, fault, (luck.choice(cast.nodes),), seconds, luck.choice(JUMPS))
        case Fault.AWAY:
            return Strike(at, fault, (luck.choice(cast.anchors),), seconds)
        case Fault.DEAD:
            dying = tuple(name for name in cast.anchors if name not in cast.spared)
            return Strike(at, fault, (luck.choice(dying or mortal),), 0.0)
        case Fault.DAMAGED_DISK:
            return Strike(at, fault, (luck.choice(mortal),), 5.0)
        case Fault.REVOKED:
            return Strike(at, fault, (cast.thief or "",), seconds, luck.choice(JUMPS))
        case Fault.NEWCOMER:
            return Strike(at, fault, (newcomers.pop(),), 0.0)
        case Fault.CHANGE:
            return Strike(at, fault, (), 0.0)
        case _:
            return Strike(at, fault, (luck.choice(cast.nodes),), seconds)
