"""A worker that is a tracker and nothing else: of a star, or the one that ships."""

from __future__ import annotations

from random import Random

from msgspec import Struct

from bench.workers.star import StarTracker
from bench.workers.talk import Ready, orders, role, say
from linnet.core.stores import Store
from linnet.node.config import NodeConfig, TrackerSection
from linnet.node.library import Node
from linnet.node.running import run
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import NodeMachine
from linnet.peer.peer import Peer


class TrackerRole(Struct, frozen=True):
    """Which overlay to build."""

    star: bool


def star(config: PeerConfig, identity: Identity, store: Store, rng: Random) -> NodeMachine:
    """A node machine with the tracker of a star."""
    return StarTracker(Peer(config, identity, store, rng))


async def main(given: TrackerRole) -> None:
    ships = NodeConfig(tracker=TrackerSection(enabled=True))
    async with Node(machine=star) if given.star else Node(config=ships) as node:
        say(Ready(node.address))
        async for _ in orders():
            pass


if __name__ == "__main__":
    run(main(role(TrackerRole)))
