"""The causal graph against a naive closure of it."""

from __future__ import annotations

import tracemalloc
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delivery.graphs import Graph, build, graphs, grow, name, past

from linnet.delivery.causal_graph import Dag

A, B, C, D = (name(number) for number in range(4))


@given(graphs())
def test_the_past_is_what_a_naive_closure_says(graph: Graph) -> None:
    dag = build(graph.values())
    for b in graph:
        before = past(graph, graph[b].refs)
        for a in graph:
            assert dag.precedes(a, b) == (a in before)
            assert dag.precedes(a, b) == (a in before), "the second time from memory"


@given(graphs())
def test_heads_are_the_maximal_events(graph: Graph) -> None:
    dag = build(graph.values())
    shown = [id for id, node in graph.items() if node.shown]
    followed = {ref for node in graph.values() for ref in node.refs}
    covered = {id for other in shown for id in past(graph, graph[other].refs)}
    assert set(dag.all_heads) == set(graph) - followed
    assert set(dag.heads) == set(shown) - covered
    for heads in (dag.heads, dag.all_heads):
        assert list(heads) == sorted(heads, key=lambda id: (-graph[id].height, id))


@given(graphs(), st.randoms(use_true_random=False))
def test_the_order_of_arrival_changes_nothing(graph: Graph, rng: Random) -> None:
    dag, other = build(graph.values()), Dag()
    waiting = list(graph.values())
    while waiting:
        ready = [node for node in waiting if all(other.knows(ref) for ref in node.refs)]
        node = rng.choice(ready)
        waiting.remove(node)
        other.add(*node)
    assert (dag.heads, dag.all_heads) == (other.heads, other.all_heads)
    assert list(dag.ids_in_order()) == list(other.ids_in_order())
    assert [dag.reach(id) for id in graph] == [other.reach(id) for id in graph]


@given(graphs())
def test_the_reach_is_our_latest_event_in_the_past(graph: Graph) -> None:
    dag = build(graph.values())
    for id in graph:
        ours = [mine for one in past(graph, [id]) if (mine := graph[one].mine) is not None]
        assert dag.reach(id) == max(ours, default=-1)


@given(graphs(), st.data())
def test_what_was_settled_and_came_after_all_takes_its_place(graph: Graph, data: st.DataObject) -> None:
    """An event that is taken for lost at first leaves the same graph as one that never was."""
    late = data.draw(st.lists(st.sampled_from(list(graph)), unique=True)) if graph else []
    dag = Dag()
    for node in graph.values():
        if node.id in late:
            dag.settle(node.id, node.height)
        else:
            dag.add(*node)
    for a in late:
        for b in graph:
            dag.precedes(a, b)
    assert len(dag) == len(graph) - len(late)
    assert dag.late == 0
    for node in data.draw(st.permutations([graph[id] for id in late])):
        assert dag.is_settled(node.id)
        dag.add(*node)
        assert dag.knows(node.id)
    whole = build(graph.values())
    assert dag.late == len(late)
    assert (dag.heads, dag.all_heads) == (whole.heads, whole.all_heads)
    assert list(dag.ids_in_order()) == list(whole.ids_in_order())
    for b in graph:
        assert dag.reach(b) == whole.reach(b)
        assert [dag.precedes(a, b) for a in graph] == [whole.precedes(a, b) for a in graph]


@given(graphs())
def test_the_order_is_causal(graph: Graph) -> None:
    dag = build(graph.values())
    order = list(dag.ids_in_order())
    assert len(order) == len(dag) == len(graph)
    place = {id: number for number, id in enumerate(order)}
    assert all(place[ref] < place[id] for id, node in graph.items() for ref in node.refs)


def test_what_is_settled_satisfies_and_is_not_in_the_graph() -> None:
    dag = Dag()
    dag.settle(A, 3)
    assert (dag.knows(A), dag.is_settled(A), dag.satisfies(A), dag.height(A)) == (False, True, True, 3)
    assert (len(dag), dag.heads, dag.all_heads, dag.refs(A)) == (0, (), (), ())
    dag.add(B, 4, (A,), True)
    assert (dag.knows(B), dag.is_settled(B), dag.refs(B), dag.heads) == (True, False, (A,), (B,))
    assert dag.precedes(A, B)
    assert list(dag.ids_in_order()) == [B]
    dag.settle(B, 9)
    assert (dag.knows(B), dag.height(B)) == (True, 4)


def test_nobody_knows_what_never_came() -> None:
    dag = Dag()
    assert (dag.knows(A), dag.is_settled(A), dag.satisfies(A), dag.shows(A)) == (False,) * 4
    with pytest.raises(KeyError):
        dag.add(B, 1, (A,), True)
    assert (len(dag), dag.satisfies(B)) == (0, False)


def test_what_is_not_shown_hides_no_head() -> None:
    dag = Dag()
    dag.add(A, 0, (), True)
    dag.add(B, 1, (A,), False)
    assert (dag.heads, dag.all_heads, dag.shows(B)) == ((A,), (B,), False)
    dag.add(C, 2, (B,), True)
    assert (dag.heads, dag.all_heads) == ((C,), (C,))


def test_a_second_time_changes_nothing() -> None:
    dag = Dag()
    dag.add(A, 0, (), True, 0)
    dag.add(B, 1, (A, A), True, None)
    dag.add(A, 0, (), False, 5)
    assert (len(dag), dag.heads, dag.reach(B), dag.shows(A), dag.refs(B)) == (2, (B,), 0, True, (A,))


def test_what_is_remembered_of_pasts_is_bounded() -> None:
    graph = grow(Random(1), 200, width=8)
    dag = build(graph.values())
    for a in graph:
        for b in graph:
            dag.precedes(a, b)
    assert len(dag._memo) == 8192


def test_a_large_graph_is_lean() -> None:
    graph = grow(Random(1), 20_000, width=8)
    tracemalloc.start()
    dag = build(graph.values())
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(dag) == 20_000
    assert used / 20_000 < 400, "60 MB for 100,000 would be 600 bytes each, with the id"


def test_what_is_settled_can_be_forgotten_while_nothing_refers_to_it() -> None:
    dag = Dag()
    dag.settle(A, 3)
    dag.settle(B, 4)
    dag.add(C, 4, (A,), True)
    for each in (A, B, None):
        dag.forget(each)
    assert (dag.satisfies(A), dag.is_settled(A), dag.height(A)) == (True, True, 3)
    assert (dag.satisfies(B), dag.is_settled(B), dag.refs(A)) == (False, False, ())
    dag.settle(B, 4)
    assert (dag.precedes(B, C), dag.precedes(C, B), dag.reach(B), dag.refs(B)) == (False, False, -1, ())


@given(graphs(), st.randoms(use_true_random=False))
def test_what_is_shown_later_gives_the_heads_of_what_is_shown_at_once(graph: Graph, luck: Random) -> None:
    dag = build(graph.values())
    hidden = [id for id, node in graph.items() if not node.shown]
    luck.shuffle(hidden)
    for id in hidden:
        dag.show(id)
        dag.show(id)
    assert all(map(dag.shows, graph))
    assert dag.heads == dag.all_heads
