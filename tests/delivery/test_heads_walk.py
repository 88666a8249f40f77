"""The heads walk: exactly the difference, in causal order, page by page."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.delivery.graphs import Graph, build, grow, name, past, splits

from linnet.core.ids import EventId, PeerId
from linnet.delivery.causal_graph import Dag
from linnet.delivery.heads_walk import Walks, beyond

Split = tuple[Graph, Graph, Graph]


@given(splits(), st.integers(1, 50))
def test_a_page_is_the_lowest_part_of_the_difference(split: Split, limit: int) -> None:
    graph, ours, theirs = split
    dag, heads = build(ours.values()), build(theirs.values()).all_heads
    page = beyond(dag, heads, limit)
    lacking = set(ours) - past(graph, [head for head in heads if head in ours])
    order = [id for id in dag.ids_in_order() if id in lacking]
    assert page == (tuple(order[:limit]), len(order) > limit, tuple(id for id in heads if id not in ours))


def apply(dag: Dag, graph: Graph, ids: tuple[EventId, ...]) -> int:
    new = 0
    for id in ids:
        node = graph[id]
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


class Counting(Dag):
    """Counts how often it is looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.looked = 0

    def refs(self, id: EventId) -> tuple[EventId, ...]:
        self.looked += 1
        return super().refs(id)


def test_the_cost_is_the_difference() -> None:
    """A walk near the end of a long history looks at little of it."""
    graph = grow(Random(5), 3_000)
    dag = Counting()
    for node in graph.values():
        dag.add(*node)
    known = build(list(graph.values())[:-20])
    page = beyond(dag, known.all_heads, 100)
    assert len(page.ids) == 20
    assert dag.looked < 60


ASKER = PeerId(b"a" * 32)


@given(splits(), st.integers(1, 6), st.randoms(use_true_random=False))
def test_a_walk_that_is_remembered_shows_what_a_new_one_would(split: Split, limit: int, rng: Random) -> None:
    """Whatever part of a page is applied, and whatever both learn elsewhere meanwhile."""
    graph, one, two = split
    responder, asker = build(one.values()), build(two.values())
    walks = Walks(responder)
    for _ in range(30):
        page = walks.page(ASKER, asker.all_heads, limit)
        whole = beyond(responder, asker.all_heads, len(graph) + 1)
        assert page.unknown == whole.unknown
        assert set(page.ids) <= set(whole.ids)
        assert page.more or page == whole
        assert page.ids or not page.more
        taken = rng.randint(0, len(page.ids)) if rng.random() < 0.3 else len(page.ids)
        apply(asker, graph, page.ids[:taken])
        for dag in (responder, asker):
            if rng.random() < 0.2:
                learn(dag, graph, rng)


def learn(dag: Dag, graph: Graph, rng: Random) -> None:
    """Something comes another way."""
    ready = [node for node in graph.values() if all(map(dag.knows, node.refs)) and not dag.knows(node.id)]
    if ready:
        dag.add(*rng.choice(ready))


def test_a_page_costs_no_more_than_itself() -> None:
    graph = grow(Random(6), 2_000)
    dag = Counting()
    for node in graph.values():
        dag.add(*node)
    asker, walks, pages = Dag(), Walks(dag), 0
    while True:
        page = walks.page(ASKER, asker.all_heads, 20)
        assert apply(asker, graph, page.ids[:15]) == min(15, len(page.ids)), "as if the rest had no room"
        pages += 1
        if len(asker) == 2_000:
            break
    assert pages == 134
    assert dag.looked <= 2 * 2_000


def test_only_so_many_walks_are_remembered_and_none_of_one_who_is_gone() -> None:
    graph = grow(Random(6), 30)
    walks = Walks(build(graph.values()))
    askers = [PeerId(bytes([number]) * 32) for number in range(20)]
    for asker in askers:
        assert walks.page(asker, [], 3).more
    assert list(walks._rests) == askers[-8:]
    walks.forget(askers[-1])
    walks.forget(askers[0])
    assert list(walks._rests) == askers[-8:-1]


def test_a_walk_begins_anew_when_an_event_came_into_the_middle() -> None:
    dag = Dag()
    dag.add(name(0), 0, (), True)
    dag.settle(name(1), 1)
    dag.add(name(2), 2, (name(1),), True)
    dag.add(name(3), 3, (name(2),), True)
    walks = Walks(dag)
    assert walks.page(ASKER, [], 1) == ((name(0),), True, ())
    dag.add(name(1), 1, (name(0),), True)
    assert walks.page(ASKER, [name(0)], 1) == ((name(1),), True, ())
