"""Measures of a simulated overlay at a moment: views, graphs, rings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linnet.core.ids import PeerId
from linnet.overlay.gossip.ring import position
from linnet.overlay.gossip.topic_tags import topic_keys
from linnet.sim.overlay.world import SimulatedNode, TopicWorld


def liar_share(world: TopicWorld, views: Iterable[Sequence[PeerId]]) -> float:
    """Return the liars' share of the places in these views."""
    places = lying = 0
    nodes, number_of = world.nodes, world.number_of
    for view in views:
        places += len(view)
        lying += sum(nodes[number_of[peer]].lies for peer in view)
    return lying / places if places else 0.0


def samples(world: TopicWorld) -> list[tuple[PeerId, ...]]:
    """Return the samples of all honest nodes that are up."""
    return [node.machine.peers.sampling.view for node in world.honest if node.up]


def alikes(world: TopicWorld) -> list[tuple[PeerId, ...]]:
    """Return the similar peers of all honest nodes that are up."""
    return [node.machine.peers.clustering.view for node in world.honest if node.up]


def largest_part(world: TopicWorld, topic: int) -> tuple[int, int]:
    """Return the size of the largest connected part of a topic's running honest members, and their number."""
    there = {node.identity.peer: node for node in world.up(world.members[topic])}
    topic_id = world.topic_ids[topic]
    left = dict.fromkeys(there)
    largest = 0
    while left:
        peer = next(iter(left))
        del left[peer]
        stack, size = [peer], 0
        while stack:
            size += 1
            for other in there[stack.pop()].peer.overlay.neighbors(topic_id):
                if other in left:
                    del left[other]
                    stack.append(other)
        largest = max(largest, size)
    return largest, len(there)


def connected(world: TopicWorld) -> float:
    """Return the share of topics with two or more running honest members in which these are connected."""
    found = [largest_part(world, topic) for topic in range(len(world.topic_ids))]
    found = [each for each in found if each[1] > 1]
    return sum(part == whole for part, whole in found) / len(found) if found else 1.0


def degrees(world: TopicWorld) -> list[int]:
    """Return the neighbours of each honest node that is up, each counted once for all topics."""
    return [degree(world, node) for node in world.honest if node.up]


def degree(world: TopicWorld, node: SimulatedNode) -> int:
    """Return the number of a node's neighbours, each counted once for all topics."""
    overlay, ids = node.peer.overlay, world.topic_ids
    return len({peer for topic in node.topics for peer in overlay.neighbors(ids[topic])})


def rings_right(world: TopicWorld) -> float:
    """Return the share of honest subscriptions with the true neighbours on both sides of the ring."""
    config, now = world.scenario.config, world.world.now
    right = total = 0
    status = {node.number: node.machine.status(now) for node in world.honest if node.up}
    for topic, numbers in enumerate(world.members):
        keys = topic_keys(world.topic_ids[topic], None)
        there = [node for node in (world.nodes[number] for number in numbers) if node.up]
        if len(there) < 2:
            continue
        epoch = there[0].machine.peers.own.epoch_at(now)
        order = sorted(there, key=lambda n: position(n.identity.peer, keys, epoch, config.ring_order))
        for place, node in enumerate(order):
            if node.lies:
                continue
            ring = next(each for each in status[node.number].rings if each.topic == world.topic_ids[topic])
            ahead = order[(place + 1) % len(order)].identity.peer
            back = order[place - 1].identity.peer
            total += 1
            right += ring.successors[:1] == (ahead,) and ring.predecessors[:1] == (back,)
    return right / total if total else 1.0
