"""The same nodes with a tracker: a connected graph, and events that reach all."""

from __future__ import annotations

from random import Random

from linnet.sim import overlay_state
from linnet.sim.overlay_report import OverlayScenario
from linnet.sim.tracked_world import TrackedWorld

SMALL = OverlayScenario(nodes=14, topics=2, subscriptions=1, liars=0.0, latency="constant:40", seed=5)
INTERESTS = tuple((0,) if number % 2 else (0, 1) for number in range(14))


def test_a_tracker_gives_everyone_four_neighbours() -> None:
    world = TrackedWorld(SMALL, INTERESTS)
    world.world.run(60.0)
    topic = world.topic_ids[0]
    assert {len(node.peer.overlay.neighbors(topic)) for node in world.nodes} == {4}
    assert overlay_state.connected(world) == 1.0
    luck = Random(1)
    assert world.publish(0, luck)
    world.world.run(80.0)
    assert world.meter.hit_ratio == 1.0
    gone = world.nodes[9]
    world.leave(gone)
    assert world.publish(0, luck)
    world.world.run(120.0)
    world.come_back(gone)
    world.world.run(300.0)
    assert world.meter.repaired(map(world.peers, world.members)) == 1.0
    assert (world.meter.causal_violations, world.meter.repeated) == (0, 0)
