"""Trackers and members together, on a virtual clock."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from math import dist
from random import Random

import pytest
from tests.overlay.harness import TOPIC, Network, peer_id

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.overlay.config import Control, MemberConfig, TrackerConfig
from linnet.overlay.messages import EdgeClose, EdgeOpen, Instruction, Reachability, Status
from linnet.overlay.notices import NeighborDown
from linnet.trace.records import Kind

OTHER_TOPIC = TopicId(sha256(b"another topic").digest())
SIZES = [100, pytest.param(1000, marks=pytest.mark.soak)]


def on_a_map(nodes: int, seed: int = 9) -> Callable[[PeerId, PeerId], float]:
    """Delays of nodes in sixteen places, the tracker in the middle."""
    rng = Random(seed)
    cities = [(rng.random(), rng.random()) for _ in range(16)]
    places = {peer_id(number): cities[number % 16] for number in range(nodes)}

    def delay(a: PeerId, b: PeerId) -> float:
        middle = (0.5, 0.5)
        return 0.001 + 0.12 * dist(places.get(a, middle), places.get(b, middle))

    return delay


def network(
    control: Control, nodes: int, seed: int = 1, loss: float = 0.0
) -> tuple[Network, Contact, list[PeerId]]:
    net = Network(
        seed,
        on_a_map(nodes),
        MemberConfig(control=control),
        TrackerConfig(control=control),
        loss,
    )
    tracker = net.add_tracker("tracker")
    return net, tracker, [net.add_member(number) for number in range(nodes)]


def built(nodes: int, *others: str, seed: int = 1) -> tuple[Network, list[Contact], list[PeerId]]:
    """A network that stands, with standbys."""
    net, tracker, peers = network(Control.COUNTER, nodes, seed)
    trackers = [tracker, *(net.add_tracker(name) for name in others)]
    for peer in peers:
        net.join(peer, *trackers)
    assert net.run_until(net.is_regular, 30) is not None
    return net, trackers, peers


@pytest.mark.parametrize("nodes", SIZES)
def test_a_mass_join_without_throttle_becomes_exactly_regular(nodes: int) -> None:
    net, tracker, peers = network(Control.COUNTER, nodes)
    for peer in peers:
        net.join(peer, tracker)
    done = net.run_until(net.is_regular, 60)
    assert done is not None
    assert done < 10
    assert net.is_connected()
    net.run(20)
    graph = net.trackers[tracker.peer].describe_graph(TOPIC)
    assert graph is not None
    assert {peer: set(near) for peer, near in graph.edges} == {p: set(n) for p, n in net.edges().items()}
    # Nothing moves any more, and everyone has answered its newest instruction exactly once.
    answered: dict[tuple[PeerId, int], int] = {}
    for _, peer, message, _ in net.log:
        if isinstance(message, Status):
            answered[peer, message.counter] = answered.get((peer, message.counter), 0) + 1
    newest = {to: m.counter for _, _, m, to in net.log if isinstance(m, Instruction)}
    assert all(answered[peer, counter] == 1 for peer, counter in newest.items())
    assert set(answered.values()) == {1}


@pytest.mark.parametrize("nodes", SIZES)
def test_the_naive_protocol_is_slower_noisier_and_prefers_near_neighbors(nodes: int) -> None:
    counter, tracker, peers = network(Control.COUNTER, nodes)
    for peer in peers:
        counter.join(peer, tracker)
    fast = counter.run_until(counter.is_regular, 60)
    naive, tracker, peers = network(Control.NAIVE, nodes)
    for peer in peers:
        naive.join(peer, tracker)
    assert fast is not None
    naive.run(fast)
    assert not naive.is_regular()
    degrees = {len(near) for near in naive.edges().values()}
    assert len(degrees) > 2
    slow = naive.run_until(naive.is_regular, 60)
    assert slow is None or slow > 2 * fast
    assert naive.count("Instruction") > 2 * counter.count("Instruction")
    pairs = [naive.delay(a, b) for a in peers for b in peers if a != b]
    assert naive.mean_edge_delay() < 0.95 * sum(pairs) / len(pairs)


def test_nodes_that_come_and_go_leave_a_regular_graph() -> None:
    net, (tracker,), peers = built(40)
    rng = Random(3)
    for step in range(30):
        gone = peers.pop(rng.randrange(len(peers)))
        if step % 3:
            net.kill(gone)
        else:
            net.leave(gone)
        peers.append(net.add_member(1000 + step))
        net.join(peers[-1], tracker)
        net.run(rng.uniform(0.1, 2.0))
    assert net.run_until(lambda: net.is_regular() and len(net.edges()) > 30, 60) is not None
    assert net.is_connected()


def test_a_node_that_crashes_and_returns_finds_neighbors_even_in_a_small_topic() -> None:
    net, (tracker,), peers = built(5)
    net.kill(peers[0])
    net.run(1.0)
    net.join(net.add_member(0), tracker)
    assert net.run_until(net.is_regular, 10) is not None
    assert len(net.edges()[peers[0]]) == 4


def test_a_link_that_breaks_is_mended_or_replaced() -> None:
    net, _, peers = built(30)
    for peer in peers[:10]:
        net.cut(peer, net.edges()[peer][0])
    assert net.run_until(net.is_regular, 10) is not None
    # A pair that lost its link is left alone for a minute, then everyone may be chosen again.
    net.run(70)
    assert net.is_regular()


def test_a_standby_takes_over_and_no_edge_is_touched() -> None:
    net, trackers, peers = built(40, "standby")
    edges = {peer: set(near) for peer, near in net.edges().items()}
    net.kill(trackers[0].peer)
    at = net.now
    net.run(30)
    assert {peer: set(near) for peer, near in net.edges().items()} == edges
    assert not [n for time, _, n in net.notices if time > at and isinstance(n, NeighborDown)]
    assert all(net.members[peer].tracker(TOPIC) == trackers[1].peer for peer in peers)
    # The standby is in charge now: it mends what breaks and takes in who comes.
    net.kill(peers[0])
    net.join(net.add_member(99), *trackers)
    assert net.run_until(net.is_regular, 30) is not None
    assert len(net.edges()) == 40


def test_a_tracker_that_comes_back_empty_gets_its_nodes_back_and_no_edge_is_touched() -> None:
    net, trackers, peers = built(40, "standby")
    edges = {peer: set(near) for peer, near in net.edges().items()}
    net.kill(trackers[0].peer)
    net.run(10)
    net.add_tracker("tracker")
    at = net.now
    net.run(120)
    assert all(net.members[peer].tracker(TOPIC) == trackers[0].peer for peer in peers)
    assert {peer: set(near) for peer, near in net.edges().items()} == edges
    assert not [n for time, _, n in net.notices if time > at and isinstance(n, NeighborDown)]
    assert net.trackers[trackers[1].peer].topics == ()
    net.kill(peers[0])
    net.join(net.add_member(99), *trackers)
    assert net.run_until(net.is_regular, 30) is not None


def test_a_lone_tracker_that_starts_anew_learns_what_stands() -> None:
    net, trackers, _ = built(30)
    edges = {peer: set(near) for peer, near in net.edges().items()}
    net.kill(trackers[0].peer)
    net.add_tracker("tracker")
    net.run(30)
    assert {peer: set(near) for peer, near in net.edges().items()} == edges
    graph = net.trackers[trackers[0].peer].describe_graph(TOPIC)
    assert graph is not None
    assert {peer: set(near) for peer, near in graph.edges} == edges


def test_nodes_that_cannot_be_dialled_are_linked_from_their_side() -> None:
    net = Network(4, on_a_map(40))
    tracker = net.add_tracker("tracker")
    # Some know it and give no address; some give one that does not work.
    for number in range(40):
        peer = net.add_member(number, dialable=number % 3 != 0, listens=number % 6 != 0)
        net.join(peer, tracker)
    assert net.run_until(net.is_regular, 60) is not None
    for peer, near in net.edges().items():
        assert not any(peer in net.undialable and other in net.undialable for other in near)
    assert net.members[peer_id(3)].reachability == Reachability(Reason.CONNECTION_REFUSED)
    assert net.members[peer_id(1)].reachability == Reachability(None)
    assert net.members[peer_id(0)].reachability is None


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_lost_messages_delay_it_and_no_more(seed: int) -> None:
    net, tracker, peers = network(Control.COUNTER, 40, seed, loss=0.05)
    for peer in peers:
        net.join(peer, tracker)
    assert net.run_until(net.is_regular, 300, step=1.0) is not None


def test_topology_awareness_lowers_the_mean_edge_delay() -> None:
    net, tracker, peers = network(Control.COUNTER, 128)
    for peer in peers:
        net.join(peer, tracker, near=True)
    assert net.run_until(net.is_regular, 30) is not None
    before = net.mean_edge_delay()
    net.run(120)
    assert net.mean_edge_delay() < 0.8 * before
    net.run_until(net.is_regular, 10, step=0.05)
    assert net.is_connected()


def test_zero_noise() -> None:
    """A node never hears of a topic that it has not joined, from anyone."""
    net, tracker, peers = network(Control.COUNTER, 40)
    topics = {peer: [TOPIC, OTHER_TOPIC][number % 2] for number, peer in enumerate(peers)}
    both = peers[:6]
    for peer in peers:
        net.join(peer, tracker, topic=topics[peer])
    for peer in both:
        net.join(peer, tracker, topic=TOPIC)
        net.join(peer, tracker, topic=OTHER_TOPIC)
    assert net.run_until(lambda: net.is_regular() and net.is_regular(topic=OTHER_TOPIC), 30) is not None
    net.run(60)
    heard = 0
    for _, peer, message, to in net.log:
        if isinstance(message, EdgeOpen | EdgeClose | Instruction):
            heard += 1
            for end in (peer, to):
                assert end == tracker.peer or end in both or topics[end] == message.topic
    assert heard > 200
    assert not [r for _, _, r in net.records if r.kind is Kind.REJECTED and r.reason is not Reason.STALE]


def test_storage_nodes_are_known_to_everyone_who_joined() -> None:
    net, tracker, peers = network(Control.COUNTER, 20)
    for peer in peers:
        net.join(peer, tracker)
    net.run(5)
    store = net.add_member("store")
    net.join(store, tracker, storage=True)
    net.run(10)
    for peer in peers:
        assert [contact.peer for contact in net.members[peer].storage_nodes(TOPIC)] == [store]


REPLAY = """
from hashlib import sha256
from random import Random
from tests.overlay.test_convergence import Control, network
net, tracker, peers = network(Control.{control}, 40, 5)
for peer in peers:
    net.join(peer, tracker, near=True)
net.run(5)
net.kill(peers[3])
net.run(25)
print(sha256(repr(net.log).encode()).hexdigest(), len(net.log))
"""


@pytest.mark.parametrize("control", ["COUNTER", "NAIVE"])
def test_the_same_seed_gives_the_same_messages_whatever_the_hash_seed(control: str) -> None:
    printed = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        program = REPLAY.format(control=control)
        run = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        printed.append(run.stdout)
    assert printed[0] == printed[1]
    assert int(printed[0].split()[1]) > 300
