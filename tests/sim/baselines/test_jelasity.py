from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.ids import PeerId
from linnet.sim.attacks.sampling import AttackBench, AttackPlan, jelasity
from linnet.sim.baselines.gossip import Entry, fresh
from linnet.sim.baselines.view_exchange import Jelasity, JelasityConfig


def peer(number: int) -> PeerId:
    return PeerId(number.to_bytes(32, "big"))


CONFIGS = [
    JelasityConfig(view=6, healing=healing, swapping=swapping, is_tail=is_tail, push=push, pull=pull)
    for healing, swapping in ((0, 0), (3, 0), (0, 3), (1, 2))
    for is_tail in (False, True)
    for push, pull in ((True, True), (True, False), (False, True))
]
RECEIVED = st.lists(
    st.lists(st.builds(Entry, st.integers(0, 12).map(peer), st.integers(0, 9)), max_size=6).map(tuple),
    max_size=8,
)


@given(RECEIVED, st.sampled_from(CONFIGS))
def test_a_view_has_its_size_no_self_nobody_twice_and_the_youngest_copy(
    received: list[tuple[Entry, ...]], config: JelasityConfig
) -> None:
    node = Jelasity(peer(0), [peer(number) for number in range(1, 5)], config, Random(1))
    for entries in received:
        before = node.entries
        node.answered(peer(1), entries)
        after = node.entries
        assert len(after) == min(config.view, len({entry.peer for entry in (*before, *entries)} - {peer(0)}))
        assert len({entry.peer for entry in after}) == len(after)
        youngest: dict[PeerId, int] = {}
        for entry in (*before, *entries):
            youngest[entry.peer] = min(entry.age, youngest.get(entry.peer, 99))
        assert all(entry.age == youngest[entry.peer] and entry.peer != peer(0) for entry in after)
        node.end()


def test_healing_drops_the_oldest() -> None:
    node = Jelasity(peer(0), [], JelasityConfig(view=4, healing=2), Random(1))
    node.answered(peer(1), (Entry(peer(1), 5), Entry(peer(2), 1), Entry(peer(3), 9), Entry(peer(4), 0)))
    node.answered(peer(1), (Entry(peer(5), 0), Entry(peer(6), 0)))
    assert node.view == (peer(2), peer(4), peer(5), peer(6))


def test_swapping_drops_what_was_sent() -> None:
    node = Jelasity(
        peer(0), [peer(number) for number in range(1, 7)], JelasityConfig(view=6, swapping=3), Random(1)
    )
    (ask,) = node.begin()
    assert ask.entries[0] == Entry(peer(0), 0)
    sent = [entry.peer for entry in ask.entries[1:]]
    assert len(sent) == 2
    kept = [other for other in node.view if other not in sent]
    node.answered(ask.peer, fresh([peer(8), peer(9)]))
    assert node.view == (*kept, peer(8), peer(9))


def test_the_oldest_are_not_sent_where_there_is_healing() -> None:
    node = Jelasity(peer(0), [], JelasityConfig(view=6, healing=2), Random(1))
    node.answered(peer(1), tuple(Entry(peer(number), number) for number in range(1, 7)))
    for _ in range(20):
        assert not {entry.peer for entry in node.asked(peer(9), ())} & {peer(5), peer(6)}


def test_the_tail_is_the_oldest() -> None:
    node = Jelasity(peer(0), [], JelasityConfig(view=6, is_tail=True), Random(1))
    node.answered(peer(1), tuple(Entry(peer(number), number) for number in range(1, 5)))
    assert node.begin()[0].peer == peer(4)


@pytest.mark.parametrize(
    "wrong", [{"healing": 6, "swapping": 5}, {"healing": -1}, {"push": False, "pull": False}]
)
def test_parameters_have_bounds(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"half|both"):
        JelasityConfig(view=20, **wrong)


def test_without_pushes_most_nodes_fall_out_of_all_views() -> None:
    plan = AttackPlan(nodes=100, liars=0, rounds=50, view=10, seed=2)
    pulled = AttackBench(jelasity(JelasityConfig(view=10, healing=1, push=False)), plan).run()[-1]
    both = AttackBench(jelasity(JelasityConfig(view=10, healing=1)), plan).run()[-1]
    assert pulled.unknown > 0.6 * 100
    assert pulled.most_known > 1.5 * both.most_known
    assert both.unknown <= 3
