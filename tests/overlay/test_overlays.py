"""Which overlay a topic has, and that nothing is lost while it changes over."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.conftest import SOAK
from tests.overlay.changing import ChangingVillage
from tests.overlay.harness import HELLO, hints, peer_id
from tests.streams.village import STREAM

from linnet.core.effects import CancelTimer, Hold, Release, SetTimer
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import LinkDown, LinkUp, Received, TimerFired
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Outbox
from linnet.overlay.config import MemberConfig, Overlay
from linnet.overlay.gossip.commands import ExamineOverlay, TrackerlessStatus
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.messages import Beside
from linnet.overlay.gossip.part import GossipOverlay
from linnet.overlay.gossip.topic_tags import epoch_of, hint, proof, topic_keys
from linnet.overlay.messages import EdgeClose, EdgeOpen, Instruction
from linnet.overlay.notices import Adjacency, JoinRefused, NeighborDown, NeighborUp
from linnet.overlay.part import ChangeoverDue, Overlays
from linnet.overlay.tracker_client import TopicOptions, TrackerClient
from linnet.sim.light_network import PartMachine
from linnet.sim.seeded_random import SeededEntropy
from linnet.sim.signature_cache import IDEAL
from linnet.store.memory import MemoryStore
from linnet.streams.stream_names import topic_of

TOPIC = topic_of(STREAM)


@pytest.mark.parametrize("seed", range(20 if SOAK else 2))
def test_a_live_topic_changes_over_and_back_and_nothing_is_lost(seed: int) -> None:
    village = ChangingVillage(seed, storage=0, peers=8)
    names = [f"p{number}" for number in range(8)]
    reading = {name: village.subscribe(name) for name in names}
    village.run(10.0)
    said = village.talk(10, 0, *names)
    village.switch(Overlay.RING, *names[::2])
    said = village.talk(30, said, *names)
    village.switch(Overlay.RING, *names[1::2])
    said = village.talk(120, said, *names)
    statuses = {name: village.status(name).streams[0] for name in names}
    assert {status.overlay for status in statuses.values()} == {Overlay.RING}
    assert all(status.tracker is None for status in statuses.values()), "the tracker is not followed any more"
    assert all(status.neighbors for status in statuses.values())
    village.switch(Overlay.TRACKER, *names[1::2])
    said = village.talk(30, said, *names)
    village.switch(Overlay.TRACKER, *names[::2])
    said = village.talk(120, said, *names)
    village.run(20.0)
    expected = {
        name.encode(): [number for number in range(said) if number % 8 == at] for at, name in enumerate(names)
    }
    for name, subscription in reading.items():
        assert village.missed(name, subscription) == []
        assert village.by_publisher(name, subscription) == expected


def _rings(village: ChangingVillage, name: str) -> int:
    status = village.ask(name, ExamineOverlay(), wait=0.01)
    assert isinstance(status, TrackerlessStatus)
    return len(status.rings)


def test_whoever_changes_its_mind_on_the_way_is_left_in_one_overlay_alone() -> None:
    village = ChangingVillage(storage=0, peers=4)
    names = [f"p{number}" for number in range(4)]
    reading = {name: village.subscribe(name) for name in names}
    village.run(10.0)
    village.switch(Overlay.RING, *names)
    said = village.talk(20, 0, *names)
    village.switch(Overlay.TRACKER, *names)
    village.talk(100, said, *names)
    village.run(5.0)
    assert [_rings(village, name) for name in names] == [0, 0, 0, 0]
    for name, subscription in reading.items():
        assert sum(map(len, village.by_publisher(name, subscription).values())) == 120


# One node, by hand.

US = SigningKey(b"u" * 32)
OURS = PeerId(US.public)
A, B, T = (peer_id(name) for name in ("a", "b", "tracker"))
TRACKER = Contact(T, hints(T))
NOW = 1_800_000_000.0
KEYS = topic_keys(TOPIC, None)


class Node:
    """Both overlays of a node: each call returns what they asked for and told, in one order."""

    def __init__(self, overlap: float = 60.0, has_rings: bool = True) -> None:
        out = Outbox()
        adjacency = Adjacency(out)
        member = TrackerClient(MemberConfig(), out, adjacency, ("tls://us:1",))
        cells, entropy = MemoryStore().cells, SeededEntropy(1, "us")
        rings = (
            GossipOverlay(US, TrackerlessConfig(), cells, Random(1), entropy, out, adjacency, group=IDEAL)
            if has_rings
            else None
        )
        self.overlays = Overlays(member, adjacency, out, rings, overlap)
        parts = (member, self.overlays) if rings is None else (member, rings, self.overlays)
        self._machine = PartMachine(out, *parts)
        self.overlay = self.overlays.overlay
        self.routing = self.overlays.routing

    def do(self, act: Callable[[], None], now: float = NOW) -> list[Any]:
        return self._machine.perform(act, now)

    def leave(self, now: float = NOW) -> list[Any]:
        return self.do(lambda: self.overlays.leave(TOPIC, now), now)

    def links(self, event: LinkUp | LinkDown, now: float) -> list[Any]:
        return self._machine.handle(event, now)

    def hear(self, peer: PeerId, message: Message, now: float = NOW) -> list[Any]:
        return self._machine.handle(Received(peer, message), now)

    def look(self, now: float) -> list[Any]:
        return self._machine.handle(TimerFired(ChangeoverDue(TOPIC)), now)


def _join(node: Node, overlay: Overlay, now: float = NOW, *members: PeerId) -> list[Any]:
    contacts = tuple(Contact(peer, hints(peer)) for peer in members)
    options = TopicOptions(TOPIC, (TRACKER,), 4)
    return node.do(lambda: node.overlays.join(overlay, options, now, contacts), now)


def _tracked(node: Node, peer: PeerId, now: float = NOW) -> list[Any]:
    """The tracker gives us a neighbour."""
    node.links(LinkUp(T, HELLO, True, None), now)
    told = Instruction(TOPIC, 1, (Contact(peer, hints(peer)),), ())
    node.hear(T, told, now)
    node.links(LinkUp(peer, HELLO, True, None), now)
    return node.hear(peer, EdgeOpen(TOPIC), now)


def _beside(node: Node, peer: PeerId, now: float = NOW, is_open: bool = True) -> list[Any]:
    """A member counts us as its neighbour on the ring, or no longer."""
    epoch = epoch_of(now)
    told = Beside(hint(KEYS, OURS, peer), epoch, proof(KEYS, peer, epoch), is_open, False)
    return node.hear(peer, told, now)


def _notices(effects: list[Any]) -> list[object]:
    return [each for each in effects if isinstance(each, NeighborUp | NeighborDown)]


def test_a_node_without_gossip_refuses_the_ring_and_needs_nothing_else() -> None:
    node = Node(has_rings=False)
    assert _join(node, Overlay.RING) == [JoinRefused(TOPIC, Reason.UNSUPPORTED)]
    assert node.overlay(TOPIC) is None
    assert node.leave() == []
    assert node.do(lambda: node.overlays.begin((), NOW)) == []
    assert _beside(node, A) == []
    node.overlays.stop(NOW)


def test_a_topic_has_the_overlay_that_it_was_joined_with_and_none_when_it_is_left() -> None:
    node = Node()
    assert Hold(T, hints(T), "tracker") in _join(node, Overlay.TRACKER)
    assert (node.overlay(TOPIC), node.routing(TOPIC)) == (Overlay.TRACKER, None)
    assert _notices(_tracked(node, A)) == [NeighborUp(TOPIC, A)]
    left = node.leave()
    assert Release(T, "tracker") in left
    assert _notices(left) == [NeighborDown(TOPIC, A)]
    assert node.overlay(TOPIC) is None
    assert Hold(A, hints(A), f"ring {TOPIC.hex()[:16]}") in _join(node, Overlay.RING, NOW, A)
    assert node.routing(TOPIC) is not None
    assert _notices(_beside(node, A)) == [NeighborUp(TOPIC, A)]
    assert _notices(node.leave()) == [NeighborDown(TOPIC, A)]


def test_a_neighbour_in_both_is_announced_once_and_gone_with_the_last() -> None:
    node = Node()
    _join(node, Overlay.TRACKER)
    assert _notices(_tracked(node, A)) == [NeighborUp(TOPIC, A)]
    _join(node, Overlay.RING, NOW, A)
    assert _notices(_beside(node, A)) == []
    assert _notices(_beside(node, A, is_open=False)) == []
    assert _notices(_beside(node, A)) == []
    assert _notices(node.hear(A, EdgeClose(TOPIC))) == []
    assert _notices(_beside(node, A, is_open=False)) == [NeighborDown(TOPIC, A)]
    assert _notices(_beside(node, A)) == [NeighborUp(TOPIC, A)]
    assert _notices(node.links(LinkDown(A, Reason.CRASHED), NOW)) == [NeighborDown(TOPIC, A)]


def test_the_old_overlay_is_left_a_while_after_the_new_one_has_neighbours_and_not_before() -> None:
    node = Node(60.0)
    _join(node, Overlay.TRACKER)
    _tracked(node, A)
    changed = _join(node, Overlay.RING, NOW, B)
    assert SetTimer(5.0, ChangeoverDue(TOPIC)) in changed
    again = [SetTimer(5.0, ChangeoverDue(TOPIC))]
    assert node.look(NOW + 3600) == again, "nobody was met on the ring in an hour"
    routing = node.routing(TOPIC)
    assert routing is not None
    assert routing((A,), (A, B)) == [B], "in both: everyone but where it came from"
    node.links(LinkUp(B, HELLO, True, None), NOW + 3600)
    assert _notices(_beside(node, B, NOW + 3600)) == [NeighborUp(TOPIC, B)]
    assert node.look(NOW + 3659) == again
    left = node.look(NOW + 3660)
    assert _notices(left) == [NeighborDown(TOPIC, A)]
    assert Release(T, "tracker") in left
    assert node.look(NOW + 4000) == []


def test_leaving_on_the_way_leaves_both() -> None:
    node = Node()
    _join(node, Overlay.TRACKER)
    _tracked(node, A)
    _join(node, Overlay.RING, NOW, B)
    node.links(LinkUp(B, HELLO, True, None), NOW)
    _beside(node, B)
    left = node.leave()
    assert CancelTimer(ChangeoverDue(TOPIC)) in left
    assert _notices(left) == [NeighborDown(TOPIC, A), NeighborDown(TOPIC, B)]
    assert node.look(NOW + 100) == []


def test_a_changed_mind_goes_by_the_neighbours_that_are_there_already() -> None:
    node = Node(60.0)
    _join(node, Overlay.TRACKER)
    _tracked(node, A)
    _join(node, Overlay.RING, NOW, B)
    node.links(LinkUp(B, HELLO, True, None), NOW)
    _beside(node, B)
    _join(node, Overlay.TRACKER, NOW + 30)
    assert _notices(node.look(NOW + 89)) == []
    assert _notices(node.look(NOW + 90)) == [NeighborDown(TOPIC, B)]
    assert node.overlay(TOPIC) is Overlay.TRACKER
