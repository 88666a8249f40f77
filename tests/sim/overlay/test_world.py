"""Simulated nodes with topics, without trackers and with one: they start, go, come back, and publish."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from linnet.sim.overlay import snapshot as overlay_state
from linnet.sim.overlay.scenario import OverlayScenario
from linnet.sim.overlay.world import OverlayWorld, TopicWorld, TrackedWorld, topic_id

SMALL = OverlayScenario(nodes=12, topics=2, subscriptions=1, liars=0.0, latency="constant:40", seed=5)
INTERESTS = tuple((0,) if number % 2 else (0, 1) for number in range(12))


def test_nodes_find_each_other_lose_one_and_get_it_back() -> None:
    world = OverlayWorld(SMALL, INTERESTS)
    world.world.run(200.0)
    assert overlay_state.connected(world) == 1.0
    assert overlay_state.largest_part(world, 0) == (12, 12)
    assert overlay_state.rings_right(world) == 1.0
    assert all(2 <= degree <= 11 for degree in overlay_state.degrees(world))
    luck = Random(1)
    assert world.publish(0, luck)
    world.world.run(220.0)
    gone = world.nodes[7]
    world.leave(gone)
    assert world.publish(0, luck)
    world.world.run(300.0)
    assert overlay_state.largest_part(world, 0) == (11, 11)
    assert len(world.up(world.members[0])) == 11
    world.come_back(gone)
    world.come_back(gone)
    world.world.run(500.0)
    assert overlay_state.largest_part(world, 0) == (12, 12)
    assert gone.lives == 2
    assert world.meter.repaired(map(world.peers, world.members)) == 1.0
    assert world.meter.hit_ratio == 1.0
    assert (world.meter.causal_violations, world.meter.repeated) == (0, 0)


def test_liars_are_drawn_and_never_publish() -> None:
    scenario = replace(SMALL, liars=0.5)
    world = OverlayWorld(scenario, INTERESTS)
    assert len(world.honest) == 6
    assert all(node.peer.silent is node.lies for node in world.nodes)
    views = [tuple(node.identity.peer for node in world.nodes[5:])]
    assert overlay_state.liar_share(world, views) == 6 / 7
    assert not world.publish(0, Random(1))  # Nobody has started yet.
    assert world.contact(3).hints == ("sim:3",)
    assert topic_id(1, 1) != topic_id(1, 2) != topic_id(2, 2)


def test_a_world_has_no_overlay_by_itself() -> None:
    with pytest.raises(NotImplementedError):
        TopicWorld(SMALL, INTERESTS)


def test_nodes_may_start_when_they_are_told() -> None:
    world = OverlayWorld(SMALL, INTERESTS, {11: 60.0})
    world.world.run(59.0)
    assert [node.up for node in world.nodes] == [True] * 11 + [False]
    world.world.run(61.0)
    assert world.nodes[11].up


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
