"""What is read off a simulated overlay, before and while it forms."""

from __future__ import annotations

from msgspec.structs import replace

from linnet.overlay.gossip.config import RingOrder, TrackerlessConfig
from linnet.sim.overlay import snapshot as overlay_state
from linnet.sim.overlay.scenario import OverlayScenario
from linnet.sim.overlay.world import OverlayWorld

SMALL = OverlayScenario(nodes=9, topics=2, subscriptions=1, liars=0.2, latency="constant:40", seed=2)
INTERESTS = tuple((0, 1) if number < 4 else (0,) for number in range(9))


def test_before_anything_has_happened() -> None:
    world = OverlayWorld(SMALL, INTERESTS)
    assert overlay_state.samples(world) == []
    assert overlay_state.liar_share(world, []) == 0.0
    assert (overlay_state.connected(world), overlay_state.rings_right(world)) == (1.0, 1.0)
    assert overlay_state.largest_part(world, 0) == (0, 0)
    world.world.run(30.0)
    world.world.run(31.0)
    assert len(overlay_state.samples(world)) == len(overlay_state.degrees(world)) == 7


def test_places_that_are_hashes_are_right_as_well() -> None:
    config = TrackerlessConfig(ring_order=RingOrder.HASH)
    world = OverlayWorld(replace(SMALL, config=config), INTERESTS)
    world.world.run(250.0)
    assert overlay_state.rings_right(world) == 1.0
    assert overlay_state.connected(world) == 1.0
    assert 0.0 <= overlay_state.liar_share(world, overlay_state.alikes(world)) <= 0.5
    node = world.honest[0]
    assert overlay_state.degree(world, node) == len(
        {peer for topic in node.topics for peer in node.machine.topics.neighbors(world.topic_ids[topic])}
    )
