"""The edge at a node: what is routed where, and whom a node on the edge has links to."""

from __future__ import annotations

from random import Random

from linnet.core.effects import AfterCommit, Dial, HangUp, Hold, Reply, Send
from linnet.core.hello import Hello
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import Asked, LinkDown, LinkUp, Received, TimerFired
from linnet.core.reasons import Reason
from linnet.edge.announcement import lan_hint
from linnet.edge.commands import EdgeStatus, ExamineEdge, Sleep, Wake
from linnet.edge.config import EdgeConfig, ProxyConfig
from linnet.edge.edge_client import FailoverDue, RetryDue, order_proxies
from linnet.edge.messages import Answer, Serve, Served, Unserve, Wanted, digest_of
from linnet.machine.commands import Declined, Done
from linnet.machine.outbox import Effect as AnyEffect
from linnet.peer.config import PeerConfig
from linnet.peer.edge import edge_delivery, only_links
from linnet.peer.interface import Effect, Examine, NodeStatus, Start
from linnet.peer.messages import PROTOCOLS
from linnet.peer.peer import Peer
from linnet.store.memory import MemoryStore
from linnet.streams.commands import StreamStatus, Subscribe
from linnet.streams.stream_names import topic_of
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
    assert AfterCommit((Dial(Q, HINTS, False),)) in ask(peer, Start())
    peer.handle(LinkUp(Q, Hello(1, 1, PROTOCOLS), True, None), NOW)
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
    edge = peer.parts.edge
    note = "a node on the edge has links to its proxies and on local networks alone: gaps"
    refused = Record(Kind.REJECTED, peer=STRANGER, reason=Reason.NOT_ALLOWED, note=note)
    assert not edge.check_hold(Hold(STRANGER, HINTS, "gaps"))
    assert peer._out.take() == [refused]
    assert not edge.check_hold(Hold(STRANGER, HINTS, "gaps"))
    assert not edge.check_hold(Hold(Q, HINTS, "gaps"))
    assert edge.check_hold(Hold(Q, HINTS, "proxy"))
    edge.nearby[STRANGER] = None
    assert edge.check_hold(Hold(STRANGER, HINTS, "gaps"))
    assert peer_of(PeerConfig()).parts.edge.check_hold(Hold(STRANGER, HINTS, "gaps"))
    assert peer._out.take() == []


def held(peer: Peer, hold: Hold) -> list[AnyEffect]:
    peer._links.hold(hold, 0.0)
    return peer._out.take()


def test_those_on_the_local_network_are_dialled_there_while_they_are_there_and_proxies_anywhere() -> None:
    peer = peer_of(EDGE)
    far, near = "tls://s:1", lan_hint(bytes(32), "10.0.0.7", 4711)
    assert held(peer, Hold(STRANGER, (near, far), "asked")) == []
    peer.parts.edge.nearby[STRANGER] = None
    found = held(peer, Hold(STRANGER, (near, far), "gossip"))
    assert found == [AfterCommit((Dial(STRANGER, (near,), is_ours=True),))]
    assert held(peer, Hold(Q, HINTS, "proxy")) == [AfterCommit((Dial(Q, HINTS, False),))]
    asked = held(peer_of(PeerConfig()), Hold(STRANGER, (far,), "asked"))
    assert asked == [AfterCommit((Dial(STRANGER, (far,), is_ours=True),))]


def test_how_many_refused_links_are_remembered_is_bounded() -> None:
    peer = peer_of(EDGE)
    for number in range(1500):
        assert not peer.parts.edge.check_hold(Hold(PeerId(number.to_bytes(32, "big")), HINTS, "gaps"))
    assert len(peer._out.take()) == 1500
    assert len(peer.parts.edge._refused) == 1024


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


R = PeerId(b"r" * 32)
TWO = PeerConfig(edge=EdgeConfig(proxies=(Contact(Q, HINTS), Contact(R, ("tls://r:1",)))))
TURNED = Record(Kind.CONTROL, peer=R, note="turned to another proxy")


def stream_at(peer: Peer) -> StreamStatus:
    """The one stream of a node."""
    (answer,) = ask(peer, Examine())
    assert isinstance(answer, Reply)
    assert isinstance(answer.result, NodeStatus)
    (status,) = answer.result.streams
    return status


def reader_behind_two() -> Peer:
    """A node that asked the first of its two proxies for a stream."""
    peer = peer_of(TWO)
    ask(peer, Start())
    ask(peer, Subscribe(1, "tea"))
    peer.handle(LinkUp(Q, Hello(1, 1, PROTOCOLS), True, None), NOW)
    return peer


def test_streams_hear_who_serves_them_and_who_keeps_them() -> None:
    peer = reader_behind_two()
    assert (stream_at(peer).neighbors, stream_at(peer).storage_nodes) == ((), (Q,))
    peer.handle(Received(Q, Served(1, (Answer(None, False),), 0, 0, 0)), NOW)
    assert stream_at(peer).neighbors == (Q,)
    peer.handle(LinkDown(Q, Reason.LOST), NOW)
    assert TURNED in peer.handle(TimerFired(FailoverDue()), NOW)
    assert stream_at(peer).storage_nodes == (Q, R)
    peer.handle(LinkUp(R, Hello(1, 1, PROTOCOLS), True, None), NOW)
    assert stream_at(peer).storage_nodes == (R,)


def test_what_no_proxy_serves_is_told_to_the_stream_and_asked_for_again() -> None:
    peer = reader_behind_two()
    topic = topic_of("tea")
    refused = peer.handle(Received(Q, Served(1, (Answer(Reason.TOO_MANY, False),), 0, 0, 0)), NOW)
    assert Record(Kind.REJECTED, topic, reason=Reason.TOO_MANY, note="join refused") in refused
    (again, _) = peer.handle(TimerFired(RetryDue()), NOW)
    assert again == Send(Q, Serve(2, (Wanted("tea", digest_of(topic, ())),)))


def test_who_stood_in_and_serves_too_late_is_no_neighbour() -> None:
    both = (Contact(Q, HINTS), Contact(R, ("tls://r:1",)))
    right, other = order_proxies(topic_of("tea"), (Q, R))
    peer = peer_of(PeerConfig(edge=EdgeConfig(at_once=2, each=1, proxies=both)))
    ask(peer, Start())
    ask(peer, Subscribe(1, "tea"))
    peer.handle(LinkUp(other, Hello(1, 1, PROTOCOLS), True, None), NOW)
    asked = Wanted("tea", digest_of(topic_of("tea"), ()))
    assert Send(other, Serve(1, (asked,))) in peer.handle(TimerFired(FailoverDue()), NOW)
    assert Send(right, Serve(2, (asked,))) in peer.handle(
        LinkUp(right, Hello(1, 1, PROTOCOLS), True, None), NOW
    )
    peer.handle(Received(right, Served(2, (Answer(None, False),), 0, 0, 0)), NOW)
    assert stream_at(peer).neighbors == (right,)
    late = peer.handle(Received(other, Served(1, (Answer(None, False),), 0, 0, 0)), NOW)
    assert Send(other, Unserve("tea", False)) in late
    assert stream_at(peer).neighbors == (right,)


def test_asleep_no_proxy_is_missed() -> None:
    peer = reader_behind_two()
    ask(peer, Sleep())
    peer.handle(LinkDown(Q, Reason.NOT_NEEDED), NOW)
    assert peer.handle(TimerFired(FailoverDue()), NOW) == []
    ask(peer, Wake())
    assert TURNED in peer.handle(TimerFired(FailoverDue()), NOW)


def test_a_client_that_pauses_is_no_neighbour_but_its_stream_is_kept() -> None:
    peer = peer_of(PeerConfig(proxy=ProxyConfig(open=True)))
    ask(peer, Start())
    peer.handle(LinkUp(Q, Hello(1, 1, PROTOCOLS), False, None), NOW)
    peer.handle(Received(Q, Serve(1, (Wanted("tea", bytes(16)),))), NOW)
    assert (stream_at(peer).neighbors, stream_at(peer).stores) == ((Q,), True)
    peer.handle(Received(Q, Unserve("tea", True)), NOW)
    assert (stream_at(peer).neighbors, stream_at(peer).stores) == ((), True)
