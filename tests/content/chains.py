"""Nodes in the order of their distance to a rendezvous, and what a publisher among them is told."""

from __future__ import annotations

from linnet.content.attribute_keys import attribute_key, distance
from linnet.content.commands import AttributeFate, Outcome
from linnet.content.config import ContentConfig
from linnet.sim.content.world import ContentWorld


def nearest_first(world: ContentWorld, attribute: str = "stock") -> list[str]:
    """The names of all nodes, the closest to the rendezvous of an attribute first."""
    key = attribute_key(attribute)
    return sorted(world.names, key=lambda name: distance(world.identities[name].peer, key))


def chain(
    nodes: int, config: ContentConfig | None = None, *, most_farther: int | None = 1, **more: object
) -> tuple[ContentWorld, list[str]]:
    """Nodes of which each knows only the next closer one to "stock" and so many, or all, that are farther;
    the rendezvous is the first."""
    world = ContentWorld(nodes, 1, config, **more)  # type: ignore[arg-type] # links or a trace
    ordered = nearest_first(world)
    peers = [world.identities[name].peer for name in ordered]
    for place, peer in enumerate(peers):
        world.tables.know(peer, [*peers[max(0, place - 1) : place], *peers[place + 1 :][:most_farther]])
    world.run(0.5)
    return world, ordered


def fates(world: ContentWorld, request: int) -> tuple[AttributeFate, ...]:
    """What a publisher was told of an event."""
    found = world.network.answers[request]
    assert isinstance(found, Outcome)
    return found.fates
