from __future__ import annotations

from random import Random

from linnet.core.ids import PeerId
from linnet.overlay.trackerless.sketch import CountMin
from linnet.sim.baselines.gossip import Ask, fresh
from linnet.sim.baselines.pulling import AnyMemory, EvenEviction, Parts, Pulling


def peer(number: int) -> PeerId:
    return PeerId(number.to_bytes(32, "big"))


def node(parts: Parts) -> Pulling:
    first = [peer(number) for number in range(1, 5)]
    return Pulling(peer(0), first, AnyMemory(4, Random(1)), parts, Random(2))


def test_as_many_of_an_answer_are_offered_as_is_said() -> None:
    for offered, changed in ((1, 1), (2, 2)):
        pulling = node(Parts(offered=offered))
        before = set(pulling.view)
        pulling.answered(peer(1), fresh([peer(0), *[peer(number) for number in range(10, 20)]]))
        assert 1 <= len(set(pulling.view) - before) <= changed
        assert peer(0) not in pulling.view


def test_whoever_asks_is_taken_in_only_if_introduced() -> None:
    for is_introduced in (True, False):
        pulling = node(Parts(answer=3, is_introduced=is_introduced))
        answer = pulling.asked(peer(9), fresh([peer(9)]))
        assert answer[0].peer == peer(0)
        assert len(answer) == 3
        assert (peer(9) in pulling.view) is is_introduced


def test_it_pulls_from_one_that_it_knows() -> None:
    (ask,) = node(Parts()).begin()
    assert ask == Ask(ask.peer, fresh([peer(0)]), is_answered=True)
    assert ask.peer in node(Parts()).view
    assert Pulling(peer(0), [], AnyMemory(4, Random(1)), Parts(), Random(2)).begin() == []


def test_with_even_eviction_those_seen_often_give_way_as_others_do() -> None:
    gone = [0, 0]
    for seed in range(300):
        memory = EvenEviction(2, CountMin(4, 64, b"k" * 32), Random(seed), 0.25)
        for number in (0, 1, 1, 1, 1, 2):
            memory.count(peer(number))
            evicted = memory.offer(peer(number))
            if evicted is not None:
                gone[int.from_bytes(evicted, "big")] += 1
    assert sum(gone) > 200
    assert 0.7 < gone[0] / gone[1] < 1.4
