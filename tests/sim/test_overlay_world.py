"""Simulated nodes without trackers: they start, go, come back, and publish."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from linnet.core.errors import RemoteError
from linnet.sim import overlay_state
from linnet.sim.clock import START
from linnet.sim.overlay_report import OverlayScenario
from linnet.sim.overlay_world import OverlayWorld, RememberedDescriptors
from linnet.sim.topic_world import topic_id

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


def test_a_descriptor_is_checked_once_and_forgeries_every_time() -> None:
    world = OverlayWorld(SMALL, INTERESTS)
    descriptor = world.nodes[0].machine.gossip.shown(START).descriptor
    check = RememberedDescriptors()
    for _ in range(3):
        check(descriptor, START)
    assert check.checked == 1
    forged = replace(descriptor, version=9)
    for _ in range(2):
        with pytest.raises(RemoteError):
            check(forged, START)
    with pytest.raises(RemoteError):
        check(descriptor, START + 10 * 86_400)
    assert topic_id(1, 1) != topic_id(1, 2) != topic_id(2, 2)
