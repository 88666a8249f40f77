from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from linnet.core.ids import PeerId
from linnet.sim.attacks.sampling import AttackBench, AttackPlan, cyclon
from linnet.sim.baselines.gossip import Ask, Entry, fresh
from linnet.sim.baselines.view_exchange import Cyclon


def peer(number: int) -> PeerId:
    return PeerId(number.to_bytes(32, "big"))


def node(size: int = 4, shuffled: int = 2) -> Cyclon:
    made = Cyclon(peer(0), [], size, shuffled, Random(1))
    made.answered(peer(9), (Entry(peer(1), 3), Entry(peer(2), 7)))
    return made


def test_the_oldest_leaves_and_gets_us_in_its_place() -> None:
    shuffling = node()
    assert shuffling.begin() == [Ask(peer(2), (Entry(peer(0), 0), Entry(peer(1), 4)), is_answered=True)]
    assert shuffling.entries == (Entry(peer(1), 4),)
    shuffling.unanswered(peer(2))
    assert shuffling.view == (peer(1),), "a dead one is gone for nothing"


def test_an_answer_fills_free_places_and_then_those_of_what_was_sent() -> None:
    shuffling = Cyclon(peer(0), [peer(number) for number in (1, 2, 3, 4)], 4, 3, Random(1))
    (ask,) = shuffling.begin()
    sent = [entry.peer for entry in ask.entries[1:]]
    kept = set(shuffling.view) - set(sent)
    shuffling.answered(ask.peer, fresh([peer(0), next(iter(kept)), peer(7), peer(8), peer(9)]))
    assert set(shuffling.view) == kept | {peer(7)} | set(sent), (
        "us and those known are dropped, three are read"
    )
    shuffling.asked(peer(20), fresh([peer(20), peer(21), peer(22)]))
    assert set(shuffling.view) > {peer(20), peer(21)}


def test_the_asked_one_sends_as_many_and_ages_nothing() -> None:
    shuffling = node()
    answer = shuffling.asked(peer(5), fresh([peer(5), peer(6)]))
    assert set(answer) == {Entry(peer(1), 3), Entry(peer(2), 7)}
    assert set(shuffling.entries) == {
        Entry(peer(1), 3),
        Entry(peer(2), 7),
        Entry(peer(5), 0),
        Entry(peer(6), 0),
    }


@given(st.lists(st.lists(st.integers(0, 15).map(peer), max_size=6), max_size=10))
def test_a_view_has_its_size_no_self_and_nobody_twice(received: list[list[PeerId]]) -> None:
    shuffling = Cyclon(peer(0), [peer(1), peer(2), peer(3)], 5, 3, Random(2))
    for peers in received:
        for ask in shuffling.begin():
            shuffling.answered(ask.peer, fresh(peers))
        shuffling.asked(peer(14), fresh([peer(14), *peers]))
        shuffling.end()
        assert len(shuffling.view) <= 5
        assert len(set(shuffling.view)) == len(shuffling.view)
        assert peer(0) not in shuffling.view


def test_in_degrees_are_narrow_without_liars_and_views_are_lost_to_them() -> None:
    calm = AttackBench(cyclon(10, 5), AttackPlan(nodes=150, liars=0, rounds=40, view=10, seed=3)).run()[-1]
    assert calm.unknown == 0
    assert calm.deviation < 3.0
    plan = AttackPlan(nodes=150, liars=15, rounds=60, view=10, is_asking=True, seed=3)
    assert AttackBench(cyclon(10, 5), plan).run()[-1].share > 0.9
