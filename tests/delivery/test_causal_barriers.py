"""Causal barriers: after its causes, never twice, whatever comes in whatever order; and their limits."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delivery.graphs import Graph, Node, graphs, grow, name
from tests.driven import Driven

from linnet.core.effects import CancelTimer, Send, SetTimer
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.causal_barriers import Barriers, Offered, RecoveryDue
from linnet.delivery.causal_graph import Dag
from linnet.delivery.config import BarrierConfig
from linnet.delivery.messages import Given, Want
from linnet.trace.records import Kind, Record

TOPIC = TopicId(b"t" * 32)
TICK = RecoveryDue(TOPIC)
P, Q = PeerId(b"p" * 32), PeerId(b"q" * 32)
A, B, C, D, E = (name(number) for number in range(5))
SIZE = 10


class Scene:
    """One topic whose events are judged as they become ready."""

    def __init__(self, config: BarrierConfig | None = None) -> None:
        self.dag = Dag()
        barriers = config or BarrierConfig()
        self.barriers = Driven(lambda out: Barriers[Node](TOPIC, self.dag, barriers, out))
        self.shown: list[EventId] = []
        self.dropped: list[EventId] = []

    def offer_one(self, *given: Any) -> tuple[Offered, list[Any]]:  # noqa: ANN401 - as `Barriers.offer`
        outcome, dropped = self.barriers.offer(*given)
        effects = self.barriers.out.take()
        assert dropped == sum(isinstance(each, Record) for each in effects)
        return outcome, effects

    def offer(self, node: Node, sender: PeerId | None = None, now: float = 0.0) -> Offered:
        outcome, effects = self.offer_one(node.id, node.refs, SIZE, node, sender, now)
        self.dropped += [one.event for one in effects if isinstance(one, Record) and one.event]
        if outcome is Offered.READY:
            self.judge([node])
        return outcome

    def judge(self, ready: list[Node]) -> None:
        while ready:
            node = ready.pop(0)
            assert all(self.dag.satisfies(ref) for ref in node.refs), "after its causes"
            assert not self.dag.knows(node.id), "never twice"
            if node.shown:
                self.dag.add(*node)
                self.shown.append(node.id)
            else:
                self.dag.settle(node.id, node.height)
            ready += self.barriers.settle(node.id)


def chain(length: int) -> list[Node]:
    return [Node(name(n), n, (name(n - 1),) if n else (), True, None) for n in range(length)]


@given(graphs(hidden=0.2), st.randoms(use_true_random=False))
def test_any_order_of_arrival_is_made_causal(graph: Graph, rng: Random) -> None:
    """Rejected ones (those not shown) satisfy who waits for them; repeats change nothing."""
    scene = Scene()
    arrivals = [*graph.values(), *rng.sample(list(graph.values()), len(graph) // 2)]
    rng.shuffle(arrivals)
    for node in arrivals:
        if not scene.dag.is_settled(node.id):
            scene.offer(node)
    assert sorted(scene.shown) == sorted(node.id for node in graph.values() if node.shown)
    barriers = scene.barriers
    assert (len(barriers), barriers.bytes, barriers.missing, barriers._needed_by) == (0, 0, 0, {})


class Network:
    """A node that lost some of what was sent, and sources that lose questions and answers."""

    def __init__(self, graph: Graph, rng: Random, config: BarrierConfig, page: int) -> None:
        self.scene = Scene(config)
        self.graph, self.rng, self.page = graph, rng, page
        self.now = 0.0
        self.timer: float | None = None
        self.sources = [P, Q]

    def run(self) -> None:
        for _ in range(2_000):
            if self.timer is None:
                break
            self.now, self.timer = self.timer, None
            self.perform(self.scene.barriers.handle_timer(self.now, self.sources))

    def perform(self, effects: list[Any]) -> None:
        for effect in effects:
            if isinstance(effect, SetTimer):
                self.timer = self.now + effect.delay
            elif isinstance(effect, Send) and self.rng.random() < 0.7:
                self.answer(effect.peer, effect.message)

    def arrive(self, node: Node, sender: PeerId) -> None:
        outcome, effects = self.scene.offer_one(node.id, node.refs, SIZE, node, sender, self.now)
        self.perform(effects)
        if outcome is Offered.READY:
            self.scene.judge([node])

    def answer(self, peer: PeerId, want: Want) -> None:
        held = [self.graph[id] for id in want.ids if self.rng.random() < 0.8]
        unknown = tuple(id for id in want.ids if self.graph[id] not in held)
        for node in held[: self.page]:
            self.arrive(node, peer)
        answer = Given(TOPIC, want.request, (), (), unknown, Reason.NOT_HELD if unknown else None)
        self.perform(self.scene.barriers.handle_answer(peer, answer, self.now, self.sources))


@given(
    graphs(most=30, hidden=0.0),
    st.randoms(use_true_random=False),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_what_was_lost_is_fetched_in_the_end(graph: Graph, rng: Random, page: int, ids: int) -> None:
    """As long as something newer came: questions and answers may be lost, sources come and go."""
    network = Network(graph, rng, BarrierConfig(ids=ids, tries=4), page)
    followed = {ref for node in graph.values() for ref in node.refs}
    for node in graph.values():
        if node.id not in followed or rng.random() < 0.3:
            network.arrive(node, P)
    for _ in range(100):
        network.run()
        if not network.scene.barriers.missing:
            break
        peer = rng.choice(network.sources)
        network.perform(network.scene.barriers.remove_source(peer, network.now))
        network.perform(network.scene.barriers.add_source(peer, network.now))
    assert sorted(network.scene.shown) == sorted(graph)
    assert (len(network.scene.barriers), network.scene.barriers.bytes) == (0, 0)


@pytest.mark.parametrize("bound", ["events", "bytes"])
@given(graphs(most=30, hidden=0.0), st.randoms(use_true_random=False), st.integers(1, 6))
def test_no_room_is_ever_exceeded_and_what_is_let_go_is_said(
    bound: str, graph: Graph, rng: Random, room: int
) -> None:
    scene = Scene(BarrierConfig(events=room) if bound == "events" else BarrierConfig(bytes=room * SIZE))
    nodes = list(graph.values())
    rng.shuffle(nodes)
    for node in nodes:
        scene.offer(node)
        assert len(scene.barriers) <= room
        assert scene.barriers.bytes == SIZE * len(scene.barriers)
    held = [node.id for node in nodes if scene.barriers.waits(node.id)]
    assert sorted([*scene.shown, *scene.dropped, *held]) == sorted(graph)
    for node in graph.values():
        scene.offer(node)
    assert sorted(scene.shown) == sorted(graph), "whatever comes again in order is taken"


def test_what_has_its_causes_is_ready_and_known_ones_are_repeated() -> None:
    scene = Scene()
    a, b, c = chain(3)
    assert scene.offer(a) is Offered.READY
    assert scene.offer(a) is Offered.REPEATED
    assert scene.offer(c) is Offered.WAITING
    assert scene.offer(c) is Offered.REPEATED
    assert scene.barriers.waits(C)
    assert scene.offer(b) is Offered.READY
    assert scene.shown == [A, B, C]


def test_what_is_missing_is_asked_for_after_a_delay_and_what_waits_here_is_not() -> None:
    scene = Scene()
    _, b, c = chain(3)
    offer = scene.offer_one
    assert offer(C, c.refs, SIZE, c, P, 1.0) == (Offered.WAITING, [SetTimer(0.5, TICK)])
    assert offer(B, b.refs, SIZE, b, Q, 1.2) == (Offered.WAITING, [])
    d = Node(D, 3, (C,), True, None)
    assert offer(D, d.refs, SIZE, d, P, 1.2) == (Offered.WAITING, [])
    assert scene.barriers.handle_timer(1.5, [P, Q]) == [SetTimer(0.19999999999999996, TICK)]
    assert scene.barriers.handle_timer(1.7, [P, Q]) == [Send(Q, Want(TOPIC, 1, (A,))), SetTimer(2.0, TICK)]
    assert (scene.barriers.missing, scene.barriers.left) == (1, 0)


def test_what_is_not_needed_by_others_is_refused_when_there_is_no_room() -> None:
    scene = Scene(BarrierConfig(events=1))
    assert scene.offer(Node(B, 1, (A,), True, None)) is Offered.WAITING
    node = Node(D, 3, (C,), True, None)
    record = Record(Kind.DROPPED, TOPIC, D, bytes=SIZE, reason=Reason.QUEUE_FULL, note="waiting")
    assert scene.offer_one(D, node.refs, SIZE, node, P, 0.0) == (Offered.FULL, [record])
    assert scene.barriers.missing == 1


def test_a_gap_longer_than_the_room_is_closed_from_its_far_end() -> None:
    """Each event that others wait for takes the place of the newest, until the causes are met."""
    scene = Scene(BarrierConfig(events=3))
    nodes = chain(10)
    for node in reversed(nodes[1:]):
        assert scene.offer(node) is Offered.WAITING
    assert scene.dropped == [name(n) for n in range(9, 3, -1)]
    assert scene.offer(nodes[0]) is Offered.READY
    assert scene.shown == [name(n) for n in range(4)]
    assert scene.barriers.missing == 0


def test_bytes_are_bounded() -> None:
    scene = Scene(BarrierConfig(bytes=25))
    nodes = chain(5)
    assert [scene.offer(node) for node in (nodes[4], nodes[2])] == [Offered.WAITING] * 2
    assert scene.offer(Node(name(9), 9, (name(8),), True, None)) is Offered.FULL
    assert scene.offer(nodes[3]) is Offered.WAITING
    assert scene.dropped == [name(9), name(2)]
    outcome, _ = scene.offer_one(nodes[1].id, nodes[1].refs, 26, nodes[1], None, 0.0)
    assert outcome is Offered.FULL
    assert scene.barriers.bytes == 20


def test_what_only_waited_for_one_that_was_let_go_is_not_asked_for() -> None:
    scene = Scene(BarrierConfig(events=1))
    scene.offer(Node(C, 2, (A, B), True, None))
    scene.offer(Node(B, 1, (D,), True, None))
    assert (scene.dropped, scene.barriers.missing) == ([C], 1)
    assert scene.barriers.handle_timer(0.5, [P])[0] == Send(P, Want(TOPIC, 1, (D,)))


def test_one_that_was_settled_while_it_waits_can_be_let_go() -> None:
    scene = Scene(BarrierConfig(bytes=30))
    scene.offer(Node(C, 2, (B,), True, None))
    scene.offer(Node(B, 1, (A,), True, None))
    scene.dag.settle(B, 1)
    scene.judge(scene.barriers.settle(B))
    scene.offer(Node(E, 4, (D,), True, None))
    outcome, _ = scene.offer_one(D, (name(9),), 25, Node(D, 3, (name(9),), True, None), None, 0.0)
    assert outcome is Offered.WAITING
    assert (len(scene.barriers), scene.barriers.bytes, scene.barriers.missing) == (1, 25, 1)


def test_missing_events_are_bounded() -> None:
    scene = Scene(BarrierConfig(missing=2))
    assert scene.offer(Node(C, 3, (A, B), True, None)) is Offered.WAITING
    assert scene.offer(Node(E, 4, (A, D), True, None)) is Offered.FULL
    assert scene.offer(Node(E, 4, (A, B), True, None)) is Offered.WAITING
    record = Record(Kind.DROPPED, TOPIC, events=1, reason=Reason.QUEUE_FULL, note="not asked for yet")
    assert scene.barriers.fetch([A, D], P, 0.0) == [SetTimer(0.0, TICK), record]


def test_what_another_has_is_asked_for_at_once_of_that_one() -> None:
    scene = Scene()
    scene.offer(chain(1)[0])
    scene.offer(Node(D, 3, (C,), True, None), sender=Q)
    assert scene.barriers.fetch([A, B, D], P, 0.0) == [SetTimer(0.0, TICK)]
    assert scene.barriers.handle_timer(0.0, [Q, P]) == [Send(P, Want(TOPIC, 1, (B,))), SetTimer(0.5, TICK)]


def test_what_is_given_up_takes_all_that_waits_for_it_along() -> None:
    scene = Scene()
    nodes = chain(4)
    for node in (*nodes[1:], Node(E, 1, (name(7),), True, None)):
        scene.offer(node)
    items, effects = scene.barriers.give_up(A), scene.barriers.out.take()
    assert items == nodes[1:]
    assert effects == [
        Record(Kind.DROPPED, TOPIC, id, bytes=SIZE, reason=Reason.MISSING_DEPENDENCY, note="waiting")
        for id in (B, C, D)
    ]
    assert (len(scene.barriers), scene.barriers.bytes, scene.barriers.missing) == (1, SIZE, 1)
    assert (scene.barriers.give_up(A), scene.barriers.out.take()) == ([], [])


def test_a_dependency_that_expired_satisfies() -> None:
    scene = Scene()
    scene.offer(Node(B, 1, (A,), True, None))
    scene.dag.settle(A, 0)
    scene.judge(scene.barriers.settle(A))
    assert scene.shown == [B]


def test_an_event_that_waits_and_is_settled_meanwhile_lets_others_go_on() -> None:
    scene = Scene(BarrierConfig(events=2))
    scene.offer(Node(C, 2, (B,), True, None))
    scene.offer(Node(B, 1, (A,), True, None))
    scene.dag.settle(B, 1)
    scene.judge(scene.barriers.settle(B))
    assert scene.shown == [C]
    assert scene.barriers.waits(B)
    scene.offer(Node(A, 0, (), True, None))
    assert scene.shown == [C, A, B]


def test_nothing_waits_after_the_end() -> None:
    scene = Scene()
    scene.offer(Node(B, 1, (A,), True, None))
    assert scene.barriers.stop() == [CancelTimer(TICK)]
    assert (len(scene.barriers), scene.barriers.bytes, scene.barriers.missing) == (0, 0, 0)
    assert scene.barriers.settle(A) == []


def test_many_that_wait_are_let_through_in_one_go() -> None:
    graph = grow(Random(3), 2_000)
    scene = Scene()
    for node in reversed(graph.values()):
        scene.offer(node)
    assert scene.shown[0] == name(0)
    assert len(scene.shown) == 2_000


def test_who_waits_for_an_event_is_known() -> None:
    scene = Scene()
    first, second, third = chain(3)
    other = Node(D, 1, (A,), True, None)
    for node in (third, second, other):
        scene.offer(node)
    assert scene.barriers.needing(A) == [second, other]
    assert scene.barriers.needing(B) == [third]
    scene.offer(first)
    assert scene.barriers.needing(A) == scene.barriers.needing(B) == []


def test_one_need_not_wait_for_a_reference_after_all() -> None:
    scene = Scene()
    barriers = scene.barriers
    lacks = Node(B, 1, (A,), True, None)
    names = Node(D, 2, (B, C), True, None)
    for node in (lacks, names):
        assert scene.offer(node) is Offered.WAITING
    assert barriers.spare(D, A) == []  # it does not wait for that
    assert barriers.spare(D, B) == []  # it waits for another still
    assert barriers.spare(D, C) == [names]
    assert (len(barriers), barriers.bytes, barriers.missing) == (1, SIZE, 1)
    assert (barriers.wants(C), barriers.waits(D), barriers.spare(D, C)) == (False, False, [])
    scene.judge([Node(A, 0, (), True, None)])
    assert scene.shown == [A, B]


def test_what_was_settled_without_having_come_can_be_asked_for() -> None:
    scene = Scene(BarrierConfig(delay=0.5, missing=1))
    scene.dag.settle(A, 0)
    scene.dag.settle(B, 0)
    assert scene.barriers.ask_back((A, B, C), P, 7.0) == [SetTimer(0.0, TICK)]
    assert scene.barriers.handle_timer(7.0, (P,))[0] == Send(P, Want(TOPIC, 1, (A,)))
    assert scene.barriers.missing == 1  # no more than may be asked for at once
    scene.judge([Node(A, 0, (), True, None)])
    assert scene.barriers.missing == 0
