"""What all simulated nodes with topics share: an overlay must be given, starts may be."""

from __future__ import annotations

import pytest

from linnet.sim.overlay_report import OverlayScenario
from linnet.sim.overlay_world import OverlayWorld
from linnet.sim.topic_world import TopicWorld

SMALL = OverlayScenario(nodes=8, topics=1, subscriptions=1, liars=0.0, latency="constant:40")
INTERESTS = tuple((0,) for _ in range(8))


def test_a_world_has_no_overlay_by_itself() -> None:
    with pytest.raises(NotImplementedError):
        TopicWorld(SMALL, INTERESTS)


def test_nodes_may_start_when_they_are_told() -> None:
    world = OverlayWorld(SMALL, INTERESTS, {7: 60.0})
    world.world.run(59.0)
    assert [node.up for node in world.nodes] == [True] * 7 + [False]
    world.world.run(61.0)
    assert world.nodes[7].up


def test_messages_may_be_weighed() -> None:
    world = OverlayWorld(SMALL, INTERESTS, weigh=lambda message: 10)
    world.world.run(60.0)
    messages, size = world.world.sent(world.nodes[0].identity.peer)
    assert size == 10 * messages > 0
    assert sum(count for count, _ in world.world.kinds.values()) >= messages


def test_what_nodes_wrote_stays_with_every_run() -> None:
    world = OverlayWorld(SMALL, INTERESTS)
    world.run(60.0)
    store = world.nodes[0].store
    written = dict(store.cells.scan("trackerless"))
    store.rollback()
    assert written
    assert dict(store.cells.scan("trackerless")) == written
