"""The world of Kademlia is the same for the same seed, and its dead are silent."""

from __future__ import annotations

from random import Random

from tests.overlay.kademlia.kademlia_world import KademliaWorld

from linnet.core.reasons import Reason
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.routing_table import NodeId
from linnet.trace.records import Kind

CONFIG = KademliaConfig(k=4)


def course(seed: int) -> tuple[int, float, list[int]]:
    world = KademliaWorld(seed, CONFIG)
    hosts = world.grow(12)
    found = world.find(hosts[3], NodeId(Random(seed).randbytes(32)))
    return world.messages, world.now, [len(host.machine.table) for host in hosts] + [found.asked]


def test_the_same_seed_is_the_same_course() -> None:
    assert course(1) == course(1)
    assert course(1) != course(2)


def test_the_dead_say_nothing_and_links_to_them_are_gone() -> None:
    world = KademliaWorld(1, CONFIG)
    hosts = world.grow(8)
    world.kill(hosts[:4])
    assert not any(host.contact.peer in other.links for host in hosts[:4] for other in hosts[4:])
    before = world.reasons[Kind.DROPPED, Reason.UNREACHABLE]
    world.find(hosts[7], hosts[0].machine.table.id)
    assert world.reasons[Kind.DROPPED, Reason.UNREACHABLE] > before
