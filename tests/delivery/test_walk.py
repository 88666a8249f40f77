"""The heads walk: exactly the difference, in causal order, page by page."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.delivery.graphs import Graph, build, grow, name, past, splits

from linnet.delivery.dag import Dag
from linnet.delivery.walk import beyond

Split = tuple[Graph, Graph, Graph]


@given(splits(), st.integers(1, 50))
def test_a_page_is_the_lowest_part_of_the_difference(split: Split, limit: int) -> None:
    graph, ours, theirs = split
    dag, heads = build(ours.values()), build(theirs.values()).all_heads
    page = beyond(dag, heads, limit)
    lacking = set(ours) - past(graph, [head for head in heads if head in ours])
    order = [id for id in dag.ids_in_order() if id in lacking]
    assert page == (tuple(order[:limit]), len(order) > limit, tuple(id for id in heads if id not in ours))


def apply(dag: Dag, graph: Graph, ids: tuple[bytes, ...]) -> int:
    new = 0
    for id in ids:
        node = graph[id]  # type: ignore[index]
        new += not dag.knows(node.id)
        dag.add(*node)
    return new


@given(splits(), st.integers(1, 9), st.integers(0, 40), st.lists(st.booleans(), max_size=20))
def test_one_who_is_behind_gets_exactly_what_it_lacks(
    split: Split, limit: int, start: int, lost: list[bool]
) -> None:
    """Whatever was known before, pages lost or applied twice: each new page goes on from the heads."""
    graph, ours, _ = split
    known = past(graph, list(ours)[start : start + 2])
    responder, asker = build(ours.values()), build(node for node in ours.values() if node.id in known)
    sent = 0
    while True:
        page = beyond(responder, asker.all_heads, limit)
        if lost and lost.pop():
            continue
        assert page.unknown == ()
        assert apply(asker, graph, page.ids) == len(page.ids)
        sent += len(page.ids)
        if not page.more:
            break
    assert sent == len(ours) - len(known)
    assert list(asker.ids_in_order()) == list(responder.ids_in_order())


@given(splits(), st.integers(1, 9))
def test_two_that_went_on_apart_end_with_the_same(split: Split, limit: int) -> None:
    """Some may be sent twice where the one does not know the other's heads; nothing is left out."""
    graph, one, two = split
    left, right = build(one.values()), build(two.values())
    for asker, responder in ((left, right), (right, left)):
        for page_limit in (limit, 1_000):
            apply(asker, graph, beyond(responder, asker.all_heads, page_limit).ids)
    assert list(left.ids_in_order()) == list(right.ids_in_order())


def test_a_settled_head_is_unknown_to_the_walk_and_a_settled_event_is_not_sent() -> None:
    dag = Dag()
    dag.settle(name(0), 0)
    dag.add(name(1), 1, (name(0),), True)
    assert beyond(dag, [name(0), name(0), name(9)], 5) == ((name(1),), False, (name(0), name(9)))


def test_the_cost_is_the_difference() -> None:
    """A walk near the end of a long history looks at little of it."""

    class Counting(Dag):
        looked = 0

        def refs(self, id: bytes) -> tuple[bytes, ...]:  # type: ignore[override]
            Counting.looked += 1
            return super().refs(id)  # type: ignore[arg-type]

    graph = grow(Random(5), 3_000)
    dag = Counting()
    for node in graph.values():
        dag.add(*node)
    known = build(list(graph.values())[:-20])
    page = beyond(dag, known.all_heads, 100)
    assert len(page.ids) == 20
    assert Counting.looked < 60
