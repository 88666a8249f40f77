"""The edge at a node: what is routed where, and whom a node on the edge has links to."""

from __future__ import annotations

from random import Random

from linnet.core.effects import Dial, HangUp, Hold, Reply, Send
from linnet.core.hello import Hello
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import Asked, LinkUp, Received
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined, Done
from linnet.edge.hints import lan_hint
from linnet.edge.messages import Answer, Serve, Served, Unserve, Wanted
from linnet.edge.proxy_commands import EdgeStatus, ExamineEdge, Sleep, Wake
from linnet.edge.proxy_config import EdgeConfig
from linnet.peer.config import PeerConfig
from linnet.peer.edge import edge_delivery, only_links
from linnet.peer.interface import Effect, Start
from linnet.peer.messages import PROTOCOLS
from linnet.peer.peer import Peer
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity
from linnet.trace.records import Kind, Record

NOW = 1_700_000_000.0
Q, STRANGER = PeerId(b"q" * 32), PeerId(b"s" * 32)
HINTS = ("tls://q:1",)
EDGE = PeerConfig(edge=EdgeConfig(proxies=(Contact(Q, HINTS),)))


def peer_of(config: PeerConfig) -> Peer:
    identity = known_identity("us", NOW)
    return Peer(config, identity, MemoryStore(), Random(1))


def ask(peer: Peer, command: object) -> list[Effect]:
    return peer.handle(Asked(1, command), NOW)  # type: ignore[arg-type]


def test_a_node_on_the_edge_dials_its_proxy_and_sleeps_on_command() -> None:
    peer = peer_of(EDGE)
    assert Dial(Q, HINTS) in ask(peer, Start())
    peer.handle(LinkUp(Q, Hello(1, 1, PROTOCOLS), True), NOW)
    slept = ask(peer, Sleep())
    assert HangUp(Q, Reason.NOT_NEEDED) in slept
    assert Reply(1, Done()) in slept
    (answer,) = ask(peer, ExamineEdge())
    assert isinstance(answer, Reply)
    assert isinstance(answer.result, EdgeStatus)
    assert answer.result.asleep
    assert ask(peer, Wake())[-1] == Reply(1, Done())


def test_what_others_want_links_for_is_refused_once_with_a_record() -> None:
    peer = peer_of(EDGE)
    edge = peer._edge
    note = "a node on the edge has links to its proxies and on local networks alone: gaps"
    refused = Record(Kind.REJECTED, peer=STRANGER, reason=Reason.NOT_ALLOWED, note=note)
    assert edge.objection(Hold(STRANGER, HINTS, "gaps")) == [refused]
    assert edge.objection(Hold(STRANGER, HINTS, "gaps")) == []
    assert edge.objection(Hold(Q, HINTS, "gaps")) == []
    assert edge.objection(Hold(Q, HINTS, "proxy")) is None
    edge.nearby[STRANGER] = None
    assert edge.objection(Hold(STRANGER, HINTS, "gaps")) is None
    assert peer_of(PeerConfig())._edge.objection(Hold(STRANGER, HINTS, "gaps")) is None


def test_those_on_the_local_network_are_dialled_there_while_they_are_there_and_proxies_anywhere() -> None:
    peer = peer_of(EDGE)
    links, edge = peer._links, peer._edge
    far, near = "tls://s:1", lan_hint(bytes(32), "10.0.0.7", 4711)
    assert links.hold(Hold(STRANGER, (near, far), "asked"), 0.0) == []
    edge.nearby[STRANGER] = None
    assert links.hold(Hold(STRANGER, (near, far), "gossip"), 0.0) == [Dial(STRANGER, (near,))]
    assert links.hold(Hold(Q, HINTS, "proxy"), 0.0) == [Dial(Q, HINTS)]
    assert peer_of(PeerConfig())._links.hold(Hold(STRANGER, (far,), "asked"), 0.0) == [Dial(STRANGER, (far,))]


def test_how_many_refused_links_are_remembered_is_bounded() -> None:
    edge = peer_of(EDGE)._edge
    for number in range(1500):
        assert edge.objection(Hold(PeerId(number.to_bytes(32, "big")), HINTS, "gaps"))
    assert len(edge._refused) == 1024


def test_a_node_that_is_no_proxy_says_so() -> None:
    peer = peer_of(PeerConfig())
    note = Record(Kind.REJECTED, peer=Q, reason=Reason.NOT_RESPONSIBLE, note="Serve")
    answer = Served(3, (Answer(Reason.NOT_RESPONSIBLE, False),), 0, 0, 0)
    serve = Serve(3, (Wanted("tea", bytes(16)),))
    assert peer.handle(Received(Q, serve), NOW) == [note, Send(Q, answer)]
    assert peer.handle(Received(Q, Unserve("tea", False)), NOW) == [
        Record(Kind.REJECTED, peer=Q, reason=Reason.NOT_RESPONSIBLE, note="Unserve")
    ]
    assert peer.handle(Received(Q, answer), NOW) == [
        Record(Kind.REJECTED, peer=Q, reason=Reason.STALE, note="Served")
    ]


def test_only_a_node_on_the_edge_sleeps() -> None:
    (answer,) = ask(peer_of(PeerConfig()), Sleep())
    assert isinstance(answer, Reply)
    assert isinstance(answer.result, Declined)
    assert answer.result.reason is Reason.NOT_ALLOWED


def test_what_the_edge_changes_elsewhere() -> None:
    assert only_links(PeerConfig()) is None
    assert only_links(EDGE) == (Q,)
    assert not edge_delivery(PeerConfig()).gap_waits
    assert edge_delivery(EDGE).gap_waits
