"""Two who know different parts of a causal graph know the same after either way of synchronising."""

from __future__ import annotations

from random import Random

import pytest
from tests.conftest import SOAK
from tests.delivery.graphs import Graph, build, grow, part

from linnet.core.ids import EventId, PeerId, TopicId
from linnet.delivery.causal_graph import Dag
from linnet.delivery.heads_walk import Walks, beyond
from linnet.delivery.messages import Reconcile
from linnet.delivery.set_reconciliation import Reconciler, SortedIds

TOPIC = TopicId(b"t" * 32)
ASKER = PeerId(b"a" * 32)
PAIRS = 10_000 if SOAK else 200


def pair(seed: int) -> tuple[Graph, Graph, Graph, Random]:
    """A graph of any width, and what two know of it: the same, nothing, or something of their own."""
    luck = Random(seed)
    graph = grow(luck, luck.randrange(90), luck.randrange(1, 14), hidden=0.2)
    ids = list(graph)
    one, two = (part(graph, luck.sample(ids, min(len(ids), luck.randrange(7)))) for _ in range(2))
    return graph, one, two if luck.random() < 0.9 else one, luck


def learn(dag: Dag, graph: Graph, ids: tuple[EventId, ...]) -> None:
    for id in ids:
        dag.add(*graph[id])


def walk(graph: Graph, asker: Dag, responder: Dag, limit: int) -> None:
    """Pages until there is no more, each from the heads that there are by then."""
    walks = Walks(responder)
    while True:
        page = walks.page(ASKER, asker.all_heads, limit)
        before = len(asker)
        learn(asker, graph, page.ids)
        if not page.more or len(asker) == before:
            break
    learn(asker, graph, beyond(responder, asker.all_heads, 1_000).ids)


def reconcile(one: Graph, two: Graph) -> list[list[EventId]]:
    """What either side finds that it lacks."""
    sides = []
    for graph in (one, two):
        ids = SortedIds()
        for node in graph.values():
            ids.add(node.height, node.id)
        sides.append(Reconciler(TOPIC, 1, ids))
    need: list[list[EventId]] = [[], []]
    message: Reconcile | None = sides[0].begin()
    turn = 0
    while message is not None:
        turn = 1 - turn
        step = sides[turn].answer(message)
        assert sides[turn].failed is None
        need[turn] += step.need
        message = step.reply
    return need


@pytest.mark.timeout(1800 if SOAK else 60)
def test_after_a_walk_both_ways_all_heads_are_equal() -> None:
    for seed in range(PAIRS):
        graph, one, two, luck = pair(seed)
        left, right = build(one.values()), build(two.values())
        limit = luck.randrange(1, 40)
        walk(graph, left, right, limit)
        walk(graph, right, left, limit)
        assert left.all_heads == right.all_heads, seed
        assert list(left.ids_in_order()) == list(right.ids_in_order()), seed
        assert set(left.ids_in_order()) == {*one, *two}, seed


@pytest.mark.timeout(1800 if SOAK else 60)
def test_after_reconciling_all_heads_are_equal_and_nothing_came_that_was_there() -> None:
    for seed in range(PAIRS):
        graph, one, two, _ = pair(seed)
        need = reconcile(one, two)
        assert sorted(need[0]) == sorted(set(two) - set(one)), seed
        assert sorted(need[1]) == sorted(set(one) - set(two)), seed
        left, right = build(one.values()), build(two.values())
        for dag, ids in ((left, need[0]), (right, need[1])):
            learn(dag, graph, tuple(sorted(ids, key=lambda id: (graph[id].height, id))))
        assert left.all_heads == right.all_heads, seed
        assert list(left.ids_in_order()) == list(right.ids_in_order()), seed
