from __future__ import annotations

from msgspec import structs

from linnet.api.node_commands import Check
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.identity.text import Sort, to_text
from linnet.node.config import NodeConfig, NodeSection
from linnet.node.health import BEGIN, NodeFacts, node_checks, ring_checks
from linnet.overlay.config import Overlay
from linnet.overlay.gossip.commands import RingStatus, TrackerlessStatus
from linnet.peer.interface import NodeStatus, PeerStatus

OWN, FIRST = PeerId(b"o" * 32), PeerId(b"f" * 32)
TOPIC = TopicId(b"t" * 32)
ADDRESS = f"{to_text(Sort.DEVICE, FIRST)}@tls://h:1"
RING = NodeConfig(node=NodeSection(overlay=Overlay.RING, bootstrap=(ADDRESS,)))


def _node(*peers: PeerStatus) -> NodeStatus:
    return NodeStatus(OWN, bytes(32), 0.0, (), ("tls://h:2",), None, None, (), peers, (), ())


def _stands(known: int, *rings: RingStatus) -> TrackerlessStatus:
    return TrackerlessStatus(1, (FIRST,) * min(known, 1), (), (), known, 2, rings, 0, 0)


def test_a_node_that_knows_nobody_is_told_how_to_begin() -> None:
    alone = NodeConfig(node=NodeSection(overlay=Overlay.RING))
    assert list(ring_checks(_node(), alone, _stands(0))) == [
        Check("ring", False, "no other node is known", BEGIN)
    ]
    assert "--bootstrap" in BEGIN


def test_a_node_to_begin_with_that_does_not_answer_is_named() -> None:
    link = PeerStatus(FIRST, False, True, (), False, None, None, "", (), Reason.DIAL_TIMEOUT)
    _, first = ring_checks(_node(link), RING, _stands(0))
    assert (first.ok, first.detail, first.advice) == (
        False,
        "not linked: dial_timeout",
        f"linnet doctor {ADDRESS}",
    )
    up = PeerStatus(FIRST, True, True, (), False, 0.1, 0.0, "", (), None)
    assert len(list(ring_checks(_node(up), RING, _stands(0)))) == 1


def test_an_empty_sample_is_a_fault_though_nodes_are_known() -> None:
    status = structs.replace(_stands(2), sample=(), alone_seconds=33.4)
    ring, *_ = ring_checks(_node(), RING, status)
    told = "2 nodes known, and none of them in the sample for 33 s: nobody new is found"
    assert (ring.ok, ring.detail) == (False, told)
    assert "--bootstrap" in ring.advice


def test_topics_and_links_that_do_not_suffice() -> None:
    rings = (RingStatus(TOPIC, 0, (), (), (), 0), RingStatus(TOPIC, 3, (), (), (), 2))
    known, topics, links = ring_checks(_node(), RING, _stands(4, *rings))
    assert (known.ok, known.detail) == (True, "4 nodes known, 1 of them in the sample")
    assert (topics.ok, topics.detail) == (True, "2 topics, 1 of them with no other known member")
    assert (links.ok, links.advice) == (False, "raise trackerless.most_links")


def test_a_node_on_the_ring_is_not_told_that_trackers_are_missing() -> None:
    said = list(node_checks(NodeFacts(_node(), RING, 0.0, None, 0, _stands(4))))
    assert [check.name for check in said] == ["clock", "store", "listening", "reachable", "ring", "streams"]
    assert all(check.ok for check in said)
    assert "no tracker" in next(check.detail for check in said if check.name == "reachable")
    lone = list(node_checks(NodeFacts(_node(), NodeConfig(), 0.0, None)))
    trackers = next(check.detail for check in lone if check.name == "trackers")
    assert "by hand" not in trackers
    assert "--tracker" in trackers
    assert "--overlay ring" in trackers
