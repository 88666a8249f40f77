from __future__ import annotations

from collections import Counter
from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.overlay.topology import Topology


def grown(nodes: int, degree: int = 4, seed: int = 1) -> Topology[int]:
    topology: Topology[int] = Topology(degree, Random(seed))
    for node in range(nodes):
        topology.join(node)
    return topology


def degrees(topology: Topology[int]) -> Counter[int]:
    return Counter(len(topology.neighbors(node)) for node in topology)


def is_connected(topology: Topology[int]) -> bool:
    first = next(iter(topology))
    return all(topology.reaches(first, node) for node in topology)


def check_shape(topology: Topology[int]) -> None:
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
            changed.append(len(topology.join(following)))
            following += 1
        else:
            changed.append(len(topology.leave(live.pop(rng.randrange(len(live))))))
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
        changed = topology.join(100 + step) if step % 2 else topology.leave(rng.choice(list(topology)))
        after = {node: set(topology.neighbors(node)) for node in topology}
        assert set(changed) == {node for node in after if after[node] != before.get(node, set())}
        assert len(set(changed)) == len(changed)


def test_severed_pairs_that_do_not_suit_find_others_and_all_degrees_hold() -> None:
    rng = Random(2)
    failed: dict[frozenset[int], None] = {}
    topology: Topology[int] = Topology(4, rng, lambda a, b: frozenset((a, b)) not in failed)
    for node in range(60):
        topology.join(node)
    for _ in range(150):
        a, b = rng.choice(topology.edges())
        failed[frozenset((a, b))] = None
        assert a in topology.sever(a, b)
        assert not topology.is_adjacent(a, b)
        assert degrees(topology) == {4: 60}
    assert topology.sever(0, 0) == []


def test_the_published_steps_alone_leave_slots_over() -> None:
    """Two adjacent nodes with one free slot each: step 4 is what mends them in the tests above."""
    rng = Random(5)
    topology: Topology[int] = Topology(4, rng, plain=True)
    for node in range(36):
        topology.join(node)
    left_over = 0
    for node in range(36, 1036):
        topology.leave(rng.choice(list(topology)))
        check_shape(topology)
        left_over += degrees(topology) != {4: 35}
        topology.join(node)
    assert left_over > 20


def test_two_that_cannot_be_dialled_are_never_paired() -> None:
    rng = Random(4)
    topology: Topology[int] = Topology(4, rng)
    blind = {node for node in range(60) if node % 3 == 0}
    for node in range(60):
        topology.join(node, dialable=node not in blind)
        check_shape(topology)
    assert not any(a in blind and b in blind for a, b in topology.edges())
    assert degrees(topology) == {4: 60}
    assert is_connected(topology)


def test_nobody_starves_where_most_cannot_be_dialled() -> None:
    topology: Topology[int] = Topology(4, Random(4))
    for node in range(10):
        topology.join(node)
    for node in range(10, 40):
        topology.join(node, dialable=False)
    # Ten nodes have forty slots; thirty others share them.
    assert degrees(topology)[0] == 0
    assert max(degrees(topology)) == 4
    check_shape(topology)


def test_a_node_found_undialable_parts_from_its_like() -> None:
    topology: Topology[int] = Topology(4, Random(4))
    for node in range(20):
        topology.join(node, dialable=node % 4 != 0)
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
        topology.pause(node)
    topology.join(5)
    assert topology.neighbors(5) == ()
    changed = {node for back in range(5) for node in topology.join(back)}
    assert len(topology.neighbors(5)) >= 2
    assert 5 in changed
    check_shape(topology)


def test_paused_nodes_keep_their_edges_and_get_none() -> None:
    topology = grown(30)
    kept = topology.neighbors(3)
    topology.pause(3)
    lost = kept[0]
    topology.leave(lost)
    for node in range(40, 60):
        topology.join(node)
    assert set(topology.neighbors(3)) == set(kept) - {lost}
    topology.join(3)
    assert len(topology.neighbors(3)) == 4
    assert set(kept) - {lost} <= set(topology.neighbors(3))


def test_adopting_builds_nothing_and_repair_does() -> None:
    original = grown(50)
    heir: Topology[int] = Topology(4, Random(9))
    for node in original:
        heir.adopt(node, original.neighbors(node))
    assert {frozenset(edge) for edge in heir.edges()} == {frozenset(edge) for edge in original.edges()}
    assert heir.repair() == []
    heir.adopt(50, [0, 1, 2])
    assert heir.neighbors(50) == ()  # Those have no slot free.
    assert 50 in heir.repair()
    assert degrees(heir) == {4: 51}


def test_a_report_is_believed_whatever_it_says() -> None:
    topology = grown(30)
    others = [node for node in topology if node != 7 and node not in topology.neighbors(7)]
    claimed = [*topology.neighbors(7), *others[:2], 999]
    changed = topology.reported(7, claimed)
    # It has two too many and one that nobody knows, so it is told to let go.
    assert 7 in changed
    assert len(topology.neighbors(7)) == 4
    assert set(topology.neighbors(7)) < set(claimed)
    half = topology.neighbors(7)[:2]
    assert 7 in topology.reported(7, half)
    assert set(half) < set(topology.neighbors(7))


def test_a_report_of_what_is_expected_changes_nothing() -> None:
    topology = grown(30)
    assert topology.reported(7, reversed(topology.neighbors(7))) == []


def test_exchange_keeps_degrees_and_never_parts_the_graph() -> None:
    rng = Random(6)
    topology = grown(24)
    for _ in range(3000):
        (a, b), (c, e) = rng.choice(topology.edges()), rng.choice(topology.edges())
        topology.exchange(a, b, c, e)
    assert degrees(topology) == {4: 24}
    assert is_connected(topology)
    ring: Topology[int] = Topology(2, Random(1))
    for node in range(6):
        ring.join(node)
    first = 0
    second = ring.neighbors(first)[0]
    third = next(node for node in ring.neighbors(second) if node != first)
    fourth = next(node for node in ring.neighbors(third) if node != second)
    # This would leave a ring of two nodes fewer and a pair that has no other neighbour.
    assert ring.exchange(first, second, fourth, third) == [] or is_connected(ring)
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
    topology: Topology[int] = Topology(degree, Random(seed))
    blind: set[int] = set()
    overfull = False
    for what, node, others in steps:
        if what in ("join", "adopt"):
            topology.join(node) if what == "join" else topology.adopt(node, others)
        elif what == "blind":
            if node not in topology:
                blind.add(node)
            topology.join(node, dialable=node not in blind)
        elif what == "leave":
            topology.leave(node)
            blind.discard(node)
        elif what == "sever" and others:
            topology.sever(node, others[0])
        elif what == "pause":
            topology.pause(node)
        elif what == "dialable" and node in topology:
            (blind.discard if node in blind else blind.add)(node)
            topology.set_dialable(node, node not in blind)
        elif what == "report" and node in topology:
            topology.reported(node, others)
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
        topology.leave(node)
    assert degrees(topology) == {4: 5_000}
