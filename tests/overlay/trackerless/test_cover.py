"""The greedy cover: enough links for every topic, and few of them."""

from __future__ import annotations

from hashlib import sha256
from itertools import combinations
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from linnet.core.ids import PeerId, TopicId
from linnet.overlay.trackerless.cover import cover, uncovered


def peer(number: int) -> PeerId:
    return PeerId(sha256(b"p%d" % number).digest())


def topic(number: int) -> TopicId:
    return TopicId(sha256(b"t%d" % number).digest())


def has(*topics: int) -> list[TopicId]:
    return [topic(number) for number in topics]


worlds = st.lists(st.sets(st.integers(0, 6)), max_size=8)


def test_the_peer_that_serves_most_comes_first() -> None:
    topics = {peer(0): has(0), peer(1): has(0, 1, 2), peer(2): has(2, 3)}
    assert cover(topics, dict.fromkeys(has(0, 1, 2, 3), 1)) == [peer(1), peer(2)]


def test_among_equals_the_first_so_links_that_are_there_are_kept() -> None:
    assert cover({peer(2): has(0, 1), peer(1): has(0, 1)}, dict.fromkeys(has(0, 1), 1)) == [peer(2)]
    assert cover({peer(1): has(0, 1), peer(2): has(0, 1)}, dict.fromkeys(has(0, 1), 1)) == [peer(1)]


def test_peers_that_serve_nothing_wanted_are_left_out() -> None:
    assert cover({peer(0): has(5), peer(1): []}, {topic(0): 2}) == []
    assert cover({peer(0): has(0)}, {topic(0): 0}) == []
    assert cover({}, {topic(0): 1}) == []


@given(worlds, st.integers(1, 3))
def test_every_topic_gets_as_many_members_as_are_wanted_or_all_there_are(
    world: list[set[int]], wanted: int
) -> None:
    topics = {peer(at): has(*sorted(numbers)) for at, numbers in enumerate(world)}
    asked = {topic(number): wanted for number in range(7)}
    chosen = cover(topics, asked)
    assert len(set(chosen)) == len(chosen)
    for one in asked:
        there = sum(one in topics[member] for member in topics)
        assert sum(one in topics[member] for member in chosen) >= min(wanted, there)
    lacking = {
        one: wanted - there
        for one in asked
        if (there := sum(one in topics[member] for member in topics)) < wanted
    }
    assert uncovered(topics, asked, chosen) == lacking


@given(worlds)
def test_nobody_is_chosen_in_vain_and_few_more_than_the_fewest(world: list[set[int]]) -> None:
    topics = {peer(at): has(*sorted(numbers)) for at, numbers in enumerate(world)}
    asked = {topic(number): 1 for number in range(7)}
    chosen = cover(topics, asked)
    served: set[TopicId] = set()
    for member in chosen:
        assert set(topics[member]) - served
        served |= set(topics[member])
    least = next(
        size
        for size in range(len(topics) + 1)
        for few in combinations(topics, size)
        if {one for member in few for one in topics[member]} == served
    )
    assert len(chosen) <= least * 3


def test_links_grow_far_slower_than_topics() -> None:
    rng = Random(1)
    alike = {peer(n): has(*rng.sample(range(60), 40)) for n in range(20)}
    asked = {topic(number): 2 for number in range(60)}
    assert len(cover(alike, asked)) <= 6
