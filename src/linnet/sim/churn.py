"""Churn: a schedule of nodes going down and coming up, drawn from a seed or given, and its execution."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from linnet.core.ids import PeerId
from linnet.peer.interface import NodeMachine
from linnet.sim.network import Network
from linnet.sim.seeded_random import named_luck


class Change(NamedTuple):
    """A node goes down, or comes up again, at a virtual second."""

    at: float
    peer: PeerId
    up: bool


def drawn_churn(
    seed: int,
    peers: Sequence[PeerId],
    between: tuple[float, float],
    mean_up: float,
    mean_down: float,
) -> list[Change]:
    """Draw exponential times up and down for each node, between two virtual seconds; all are up at the
    end."""
    first, last = between
    changes: list[Change] = []
    for peer in peers:
        luck = named_luck(seed, f"churn/{peer.hex()}")
        down_at = first + luck.expovariate(1 / mean_up)
        while down_at < last:
            up_at = min(last, down_at + luck.expovariate(1 / mean_down))
            changes += (Change(down_at, peer, up=False), Change(up_at, peer, up=True))
            down_at = up_at + luck.expovariate(1 / mean_up)
    return sorted(changes)


def schedule_churn(
    network: Network, changes: Iterable[Change], revive: Callable[[PeerId], NodeMachine]
) -> None:
    """Put a schedule on a network's clock. `revive` makes the machine of a node that comes back."""
    for change in changes:
        network.at(change.at, partial(_change, network, change, revive))


def _change(network: Network, change: Change, revive: Callable[[PeerId], NodeMachine]) -> None:
    if not change.up:
        network.crash(change.peer)
    elif not network.is_up(change.peer):
        network.restart(change.peer, revive(change.peer))
