from __future__ import annotations

from collections import Counter
from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.overlay.regular_graph import Pool, RegularGraph, steger_wormald


def grown(nodes: int, degree: int = 4, seed: int = 1) -> RegularGraph[int]:
    topology: RegularGraph[int] = RegularGraph(degree, Random(seed))
    for node in range(nodes):
        topology.join_node(node)
    return topology


def degrees(topology: RegularGraph[int]) -> Counter[int]:
    return Counter(len(topology.neighbors(node)) for node in topology)


def is_connected(topology: RegularGraph[int]) -> bool:
    first = next(iter(topology))
    return all(topology.has_path(first, node) for node in topology)


def check_shape(topology: RegularGraph[int]) -> None:
    """No self-edges, no multi-edges, symmetric, nobody above the degree; the edge list agrees."""
    pairs = set()
    for node in topology:
        neighbors = topology.neighbors(node)
        assert node not in neighbors
        assert len(set(neighbors)) == len(neighbors) <= topology.degree
        for other in neighbors:
            assert node in topology.neighbors(other)
            pairs.add(frozenset((node, other)))
    assert {frozenset(edge) for edge in topology.edges()} == pairs
    assert len(topology.edges()) == len(pairs)


@pytest.mark.parametrize("nodes", [32, 64, 128, 256, 512, 1024, 2048])
def test_sequential_joins_give_every_node_exactly_four(nodes: int) -> None:
    topology = grown(nodes)
    assert degrees(topology) == {4: nodes}
    assert is_connected(topology)
    check_shape(topology)


@pytest.mark.parametrize("degree", range(2, 17))
@pytest.mark.parametrize("nodes", [18, 40, 101])
def test_other_degrees_are_exact_too(degree: int, nodes: int) -> None:
    odd = nodes * degree % 2
    expected = {degree: nodes - 1, degree - 1: 1} if odd else {degree: nodes}
    assert degrees(grown(nodes, degree)) == expected


@pytest.mark.parametrize("degree", [2, 3, 4, 6, 16])
def test_few_nodes_form_a_complete_graph(degree: int) -> None:
    for nodes in range(1, degree + 2):
        assert degrees(grown(nodes, degree)) == {nodes - 1: nodes}


def test_pairs_are_as_frequent_as_chance_says() -> None:
    """Juslenius 2021, equation 5.1: d/(n-1); the spread is that of independent draws."""
    nodes, repeats = 40, 400
    counts: Counter[tuple[int, int]] = Counter()
    for seed in range(repeats):
        counts.update((min(edge), max(edge)) for edge in grown(nodes, seed=seed).edges())
    chance = 4 / (nodes - 1)
    every = [counts[a, b] / repeats for a in range(nodes) for b in range(a + 1, nodes)]
    assert fmean(every) == pytest.approx(chance)
    spread = (sum((share - chance) ** 2 for share in every) / len(every)) ** 0.5
    assert spread == pytest.approx((chance * (1 - chance) / repeats) ** 0.5, rel=0.15)


def test_churn_keeps_it_regular_and_touches_few() -> None:
    rng = Random(5)
    topology = grown(40, seed=3)
    live, following, changed = list(topology), 40, []
    for _ in range(2000):
        if len(live) < 32 or (len(live) < 44 and rng.random() < 0.5):
            live.append(following)
            changed.append(len(topology.join_node(following)))
            following += 1
        else:
            changed.append(len(topology.remove_node(live.pop(rng.randrange(len(live))))))
        assert degrees(topology) == {4: len(live)}
    assert 4.2 < fmean(changed) < 4.9
    assert max(changed) <= 8
    assert is_connected(topology)
    check_shape(topology)


def test_changed_nodes_are_those_with_other_neighbors() -> None:
    topology = grown(30)
    rng = Random(8)
    for step in range(200):
        before = {node: set(topology.neighbors(node)) for node in topology}
        changed = (
            topology.join_node(100 + step) if step % 2 else topology.remove_node(rng.choice(list(topology)))
        )
        after = {node: set(topology.neighbors(node)) for node in topology}
        assert set(changed) == {node for node in after if after[node] != before.get(node, set())}
        assert len(set(changed)) == len(changed)


def test_severed_pairs_that_do_not_suit_find_others_and_all_degrees_hold() -> None:
    rng = Random(2)
    failed: dict[frozenset[int], None] = {}
    topology: RegularGraph[int] = RegularGraph(4, rng, lambda a, b: frozenset((a, b)) not in failed)
    for node in range(60):
        topology.join_node(node)
    for _ in range(150):
        a, b = rng.choice(topology.edges())
        failed[frozenset((a, b))] = None
        assert a in topology.cut_edge(a, b)
        assert not topology.is_adjacent(a, b)
        assert degrees(topology) == {4: 60}
    assert topology.cut_edge(0, 0) == []


def test_the_published_steps_alone_leave_slots_over() -> None:
    """Two adjacent nodes with one free slot each: step 4 is what mends them in the tests above."""
    rng = Random(5)
    topology: RegularGraph[int] = RegularGraph(4, rng, plain=True)
    for node in range(36):
        topology.join_node(node)
    left_over = 0
    for node in range(36, 1036):
        topology.remove_node(rng.choice(list(topology)))
        check_shape(topology)
        left_over += degrees(topology) != {4: 35}
        topology.join_node(node)
    assert left_over > 20


def test_two_that_cannot_be_dialled_are_never_paired() -> None:
    rng = Random(4)
    topology: RegularGraph[int] = RegularGraph(4, rng)
    blind = {node for node in range(60) if node % 3 == 0}
    for node in range(60):
        topology.join_node(node, dialable=node not in blind)
        check_shape(topology)
    assert not any(a in blind and b in blind for a, b in topology.edges())
    assert degrees(topology) == {4: 60}
    assert is_connected(topology)


def test_nobody_starves_where_most_cannot_be_dialled() -> None:
    topology: RegularGraph[int] = RegularGraph(4, Random(4))
    for node in range(10):
        topology.join_node(node)
    for node in range(10, 40):
        topology.join_node(node, dialable=False)
    # Ten nodes have forty slots; thirty others share them.
    assert degrees(topology)[0] == 0
    assert max(degrees(topology)) == 4
    check_shape(topology)


def test_a_node_found_undialable_parts_from_its_like() -> None:
    topology: RegularGraph[int] = RegularGraph(4, Random(4))
    for node in range(20):
        topology.join_node(node, dialable=node % 4 != 0)
    assert topology.set_dialable(1, True) == []
    a, b = next((a, b) for a, b in topology.edges() if (a % 4 == 0) != (b % 4 == 0))
    seer = a if a % 4 else b
    topology.set_dialable(seer, False)
    assert not any(other % 4 == 0 for other in topology.neighbors(seer))
    assert degrees(topology) == {4: 20}
    assert topology.set_dialable(seer, True) == []


def test_who_came_while_all_others_were_paused_is_linked_when_they_are_back() -> None:
    topology = grown(5)  # Everybody has all others.
    for node in range(5):
        topology.pause_node(node)
    topology.join_node(5)
    assert topology.neighbors(5) == ()
    changed = {node for back in range(5) for node in topology.join_node(back)}
    assert len(topology.neighbors(5)) >= 2
    assert 5 in changed
    check_shape(topology)


def test_paused_nodes_keep_their_edges_and_get_none() -> None:
    topology = grown(30)
    kept = topology.neighbors(3)
    topology.pause_node(3)
    lost = kept[0]
    topology.remove_node(lost)
    for node in range(40, 60):
        topology.join_node(node)
    assert set(topology.neighbors(3)) == set(kept) - {lost}
    topology.join_node(3)
    assert len(topology.neighbors(3)) == 4
    assert set(kept) - {lost} <= set(topology.neighbors(3))


def test_adopting_builds_nothing_and_repair_does() -> None:
    original = grown(50)
    heir: RegularGraph[int] = RegularGraph(4, Random(9))
    for node in original:
        heir.adopt_edges(node, original.neighbors(node))
    assert {frozenset(edge) for edge in heir.edges()} == {frozenset(edge) for edge in original.edges()}
    assert heir.fill_free_slots() == []
    heir.adopt_edges(50, [0, 1, 2])
    assert heir.neighbors(50) == ()  # Those have no slot free.
    assert 50 in heir.fill_free_slots()
    assert degrees(heir) == {4: 51}


def test_a_report_is_believed_whatever_it_says() -> None:
    topology = grown(30)
    others = [node for node in topology if node != 7 and node not in topology.neighbors(7)]
    claimed = [*topology.neighbors(7), *others[:2], 999]
    changed = topology.believe_report(7, claimed)
    # It has two too many and one that nobody knows, so it is told to let go.
    assert 7 in changed
    assert len(topology.neighbors(7)) == 4
    assert set(topology.neighbors(7)) < set(claimed)
    half = topology.neighbors(7)[:2]
    assert 7 in topology.believe_report(7, half)
    assert set(half) < set(topology.neighbors(7))


def test_a_report_of_what_is_expected_changes_nothing() -> None:
    topology = grown(30)
    assert topology.believe_report(7, reversed(topology.neighbors(7))) == []


def test_exchange_keeps_degrees_and_never_parts_the_graph() -> None:
    rng = Random(6)
    topology = grown(24)
    for _ in range(3000):
        (a, b), (c, e) = rng.choice(topology.edges()), rng.choice(topology.edges())
        topology.exchange_edges(a, b, c, e)
    assert degrees(topology) == {4: 24}
    assert is_connected(topology)
    ring: RegularGraph[int] = RegularGraph(2, Random(1))
    for node in range(6):
        ring.join_node(node)
    first = 0
    second = ring.neighbors(first)[0]
    third = next(node for node in ring.neighbors(second) if node != first)
    fourth = next(node for node in ring.neighbors(third) if node != second)
    # This would leave a ring of two nodes fewer and a pair that has no other neighbour.
    assert ring.exchange_edges(first, second, fourth, third) == [] or is_connected(ring)
    assert is_connected(ring)


@given(
    st.integers(2, 6),
    st.lists(
        st.tuples(
            st.sampled_from(["join", "blind", "leave", "sever", "pause", "dialable", "report", "adopt"]),
            st.integers(0, 14),
            st.lists(st.integers(0, 14), max_size=6),
        ),
        max_size=60,
    ),
    st.integers(0, 2**32),
)
def test_any_history_ends_and_keeps_the_rules(
    degree: int, steps: list[tuple[str, int, list[int]]], seed: int
) -> None:
    topology: RegularGraph[int] = RegularGraph(degree, Random(seed))
    blind: set[int] = set()
    overfull = False
    for what, node, others in steps:
        if what in ("join", "adopt"):
            topology.join_node(node) if what == "join" else topology.adopt_edges(node, others)
        elif what == "blind":
            if node not in topology:
                blind.add(node)
            topology.join_node(node, dialable=node not in blind)
        elif what == "leave":
            topology.remove_node(node)
            blind.discard(node)
        elif what == "sever" and others:
            topology.cut_edge(node, others[0])
        elif what == "pause":
            topology.pause_node(node)
        elif what == "dialable" and node in topology:
            (blind.discard if node in blind else blind.add)(node)
            topology.set_dialable(node, node not in blind)
        elif what == "report" and node in topology:
            topology.believe_report(node, others)
            overfull = True
        for a, b in topology.edges():
            assert not (a in blind and b in blind)
        if not overfull:
            check_shape(topology)
        assert all(topology.is_adjacent(b, a) for a, b in topology.edges())


@pytest.mark.soak
def test_ten_thousand_nodes_are_exact() -> None:
    topology = grown(10_000)
    assert degrees(topology) == {4: 10_000}
    for node in range(5_000):
        topology.remove_node(node)
    assert degrees(topology) == {4: 5_000}


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20))))
def test_it_holds_what_a_set_would_hold(steps: list[tuple[bool, int]]) -> None:
    pool: Pool[int] = Pool()
    model: set[int] = set()
    for is_added, element in steps:
        if is_added:
            pool.add(element)
            model.add(element)
        else:
            pool.discard(element)
            model.discard(element)
        assert sorted(pool) == sorted(model)
        assert all((number in pool) == (number in model) for number in range(21))


def test_all_suitable_elements_are_equally_likely() -> None:
    pool: Pool[int] = Pool()
    for element in range(100):
        pool.add(element)
    rng = Random(7)
    drawn = Counter(pool.draw_suitable(rng, lambda element: element % 10 == 3) for _ in range(5000))
    assert set(drawn) == set(range(3, 100, 10))
    assert all(400 < count < 600 for count in drawn.values())


def test_nothing_suitable_is_drawn_as_none() -> None:
    pool: Pool[int] = Pool()
    assert pool.draw_suitable(Random(1), lambda element: True) is None
    for element in range(100):
        pool.add(element)
    assert pool.draw_suitable(Random(1), lambda element: element == 100) is None
    assert pool.draw_suitable(Random(1), lambda element: element == 99) == 99


@given(st.integers(1, 24), st.integers(0, 8), st.integers(0, 2**32))
def test_every_possible_graph_is_regular_and_simple(nodes: int, degree: int, seed: int) -> None:
    if degree >= nodes or nodes * degree % 2:
        with pytest.raises(ValueError, match="no graph"):
            steger_wormald(nodes, degree, Random(seed))
        return
    graph = steger_wormald(nodes, degree, Random(seed))
    assert len(graph) == nodes
    for node, neighbors in enumerate(graph):
        assert len(neighbors) == len(set(neighbors)) == degree
        assert node not in neighbors
        assert all(node in graph[other] for other in neighbors)


def test_a_large_one_is_made() -> None:
    assert {len(neighbors) for neighbors in steger_wormald(1000, 4, Random(1))} == {4}


def test_pairs_are_as_frequent_as_in_the_growing_graph() -> None:
    nodes, repeats = 12, 3000
    rng = Random(3)
    together = sum(1 in steger_wormald(nodes, 4, rng)[0] for _ in range(repeats))
    assert together / repeats == pytest.approx(4 / (nodes - 1), rel=0.08)
