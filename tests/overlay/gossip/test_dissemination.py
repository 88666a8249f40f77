"""Whom an event goes to: four cases, spares, gaps; and what comes of it on rings of many members."""

from __future__ import annotations

import os
from functools import cache
from random import Random
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.overlay.gossip.ring_network import RingNetwork, Spread, keys_of
from tests.overlay.gossip.test_ring import PLACES, at, ring_at

from linnet.core.ids import PeerId
from linnet.overlay.gossip.dissemination import choose_targets, find_gaps
from linnet.overlay.gossip.ring import QUIET, Ring

SOAK = bool(os.environ.get("LINNET_SOAK"))
KEYS = keys_of("x")
AHEAD, SPARE, BEHIND, BACK = at(1), at(2), at(PLACES - 2), at(PLACES - 1)
FAR = [at(1 << place) for place in range(200, 208)]
UP = [SPARE, *FAR[:4], BACK, BEHIND, *FAR[4:], AHEAD]


def ring() -> Ring:
    return ring_at(0, [int.from_bytes(peer, "big") for peer in UP])


def chosen(sources: list[PeerId], fanout: int = 3, up: list[PeerId] = UP) -> tuple[PeerId, ...]:
    return choose_targets(ring(), sources, up, fanout, Random(1))


def test_a_publisher_sends_to_both_sides_and_the_rest_at_random() -> None:
    picked = chosen([], fanout=5)
    assert picked[:2] == (AHEAD, BACK)
    assert len(picked) == len(set(picked)) == 5
    assert set(picked[2:]) <= set(FAR)


def test_from_the_successor_it_goes_to_the_predecessor_and_not_back() -> None:
    picked = chosen([AHEAD])
    assert picked[0] == BACK
    assert len(set(picked)) == 3
    assert set(picked[1:]) <= set(FAR)


def test_from_the_predecessor_it_goes_to_the_successor_and_not_back() -> None:
    picked = chosen([BACK])
    assert picked[0] == AHEAD
    assert len(set(picked)) == 3
    assert set(picked[1:]) <= set(FAR)


def test_from_a_shortcut_it_goes_to_both_sides() -> None:
    picked = chosen([FAR[0]])
    assert picked[:2] == (AHEAD, BACK)
    assert len(picked) == 3
    assert picked[2] in FAR[1:]


@pytest.mark.parametrize("source", [at(PLACES // 2 + 1), at(PLACES // 4)], ids=["higher", "lower"])
def test_whether_a_source_s_key_is_higher_or_lower_says_nothing(source: PeerId) -> None:
    """Who is no neighbour is none, on whichever side of us its key lies."""
    assert chosen([source])[:2] == (AHEAD, BACK)
    lone = choose_targets(ring_at(PLACES - 5, [3, 9, 100, 200]), [at(200)], [at(3), at(200)], 2, Random(1))
    assert lone == (at(3),), "across the wrap the one with the lower key is the successor"


def test_who_sits_second_counts_as_the_neighbour_while_the_first_is_down() -> None:
    up = [peer for peer in UP if peer != AHEAD]
    assert chosen([SPARE], up=up)[0] == BACK
    assert SPARE not in chosen([SPARE], up=up)
    assert chosen([FAR[0]], up=up)[:2] == (SPARE, BACK)
    assert chosen([SPARE])[:2] == (AHEAD, BACK), "while the first is up the second is like any other"


def test_over_a_gap_one_more_at_random_stands_in_and_nothing_goes_back() -> None:
    up = [peer for peer in UP if peer not in (AHEAD, SPARE)]
    picked = chosen([BACK], up=up)
    assert len(set(picked)) == 3
    assert set(picked) <= set(FAR)
    assert chosen([], up=up)[0] == BACK
    assert len(chosen([], up=up)) == 3
    assert find_gaps(ring(), up) == (FAR[0],), "the first beyond the gap is asked"
    assert find_gaps(ring(), UP) == ()
    assert find_gaps(ring(), FAR) == (FAR[0], FAR[-1])
    assert find_gaps(ring_at(0, []), []) == ()


def test_shortcuts_are_not_drawn_from_the_ring_s_own_neighbours() -> None:
    rng = Random(1)
    drawn = {choose_targets(ring(), [FAR[7]], UP, 3, rng)[2] for _ in range(200)}
    assert drawn == set(FAR[:7])


def test_spares_are_sent_to_when_there_are_too_few_others() -> None:
    up = [AHEAD, SPARE, FAR[0], BACK, BEHIND]
    assert set(chosen([], fanout=4, up=up)) in ({AHEAD, BACK, FAR[0], SPARE}, {AHEAD, BACK, FAR[0], BEHIND})
    assert set(chosen([], fanout=9, up=up)) == set(up)


def test_alone_of_two_and_of_three() -> None:
    assert choose_targets(ring_at(0, []), [], [], 3, Random(1)) == ()
    two = ring_at(0, [7])
    assert choose_targets(two, [], [at(7)], 3, Random(1)) == (at(7),)
    assert choose_targets(two, [at(7)], [at(7)], 3, Random(1)) == ()
    three = ring_at(0, [7, 9])
    assert choose_targets(three, [at(7)], [at(7), at(9)], 3, Random(1)) == (at(9),)


@given(
    st.sets(st.sampled_from(UP)),
    st.lists(st.sampled_from(UP), max_size=3, unique=True),
    st.integers(2, 9),
    st.integers(0, 1_000),
)
def test_never_to_a_source_never_twice_never_to_who_is_down_never_more_than_the_fanout(
    up: set[PeerId], sources: list[PeerId], fanout: int, seed: int
) -> None:
    there = sorted(up)
    picked = choose_targets(ring(), sources, there, fanout, Random(seed))
    assert len(picked) == len(set(picked))
    assert set(picked) <= up - set(sources)
    assert len(picked) == min(fanout, len(up - set(sources)))


def test_behind_a_neighbour_that_never_brings_anything_the_next_is_sent_events_as_well() -> None:
    one, rng = ring(), Random(1)
    for _ in range(QUIET - 1):
        assert len(choose_targets(one, [FAR[0]], UP, 3, rng)) == 3
    assert not one.is_quiet(AHEAD)
    picked = choose_targets(one, [BACK], UP, 3, rng)
    assert one.is_quiet(AHEAD)
    assert not one.is_quiet(BACK), "it brought this one"
    assert picked[:2] == (AHEAD, SPARE), "the quiet one still gets it"
    assert len(set(picked)) == 4
    assert len(choose_targets(one, [SPARE], UP, 3, rng)) == 3, "who has it is not sent it"
    assert len(choose_targets(one, [AHEAD], UP, 3, rng)) == 3
    assert not one.is_quiet(AHEAD), "once it brings an event it is as good as any"
    assert len(choose_targets(one, [FAR[0]], UP, 3, rng)) == 3


def test_events_of_our_own_say_nothing_about_neighbours() -> None:
    one, rng = ring(), Random(1)
    for _ in range(2 * QUIET):
        assert len(choose_targets(one, [], UP, 3, rng)) == 3


# Rings of many.


@cache
def formed(count: int) -> RingNetwork:
    network = RingNetwork(seed=7)
    network.populate(count, KEYS)
    assert network.converge(KEYS, 20) <= 20
    for _ in range(3):
        network.round()
    return network


def publish(network: RingNetwork, fanout: int, events: int) -> list[Spread]:
    links = network.links(KEYS)
    publishers = network.rng.choices(network.members(KEYS), k=events)
    return [network.spread(KEYS, publisher, links, fanout) for publisher in publishers]


HOPS = {
    (100, 2): 5.5,
    (100, 3): 3.8,
    (100, 5): 2.8,
    (1000, 2): 8.9,
    (1000, 3): 6.0,
    (1000, 5): 4.3,
}
"""Mean hops by members and fan-out, of a model whose shortcuts are drawn anew for each event."""


@pytest.mark.parametrize("count", [100, *([1000] if SOAK else [])])
@pytest.mark.parametrize("fanout", [2, 3, 5])
def test_all_members_get_every_event_each_sends_f_copies_and_hops_are_few(count: int, fanout: int) -> None:
    spreads = publish(formed(count), fanout, events=40)
    assert {len(spread.hops) for spread in spreads} == {count}
    sent = sum(spread.sent for spread in spreads) / sum(len(spread.hops) for spread in spreads)
    assert sent == pytest.approx(fanout, rel=0.01)
    hops = mean(mean(spread.hops.values()) for spread in spreads)
    assert hops == pytest.approx(HOPS[count, fanout], rel=0.08)


LEAST = {0.1: {2: 0.999, 3: 0.9995, 5: 1.0}, 0.3: {2: 0.96, 3: 0.99, 5: 0.998}}
"""By share of members that fail at once and fan-out: the share of the others that an event still reaches."""


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_right_after_many_fail_at_once_spares_reach_nearly_all_and_after_repair_all(share: float) -> None:
    count, slack = (1000, 0.005) if SOAK else (120, 0.02)
    network = RingNetwork(seed=3)
    network.populate(count, KEYS)
    network.converge(KEYS, 20)
    network.fail(network.rng.sample(list(network.nodes), int(count * share)))
    alive = len(network.members(KEYS))
    for fanout, least in LEAST[share].items():
        reached = [len(spread.hops) / alive for spread in publish(network, fanout, events=20)]
        assert mean(reached) >= least - slack, fanout
    assert network.wrong(KEYS) > 0
    assert network.converge(KEYS, 10) <= 10
    for fanout in LEAST[share]:
        assert {len(spread.hops) for spread in publish(network, fanout, events=20)} == {alive}


def test_two_who_squat_beside_a_victim_and_pass_nothing_on_keep_events_from_it_only_for_a_while() -> None:
    """Their keys are ground to be next to the victim's on both sides, by id."""
    network = RingNetwork(seed=3)
    network.populate(100, KEYS)
    victim = network.members(KEYS)[0]
    for side in (1, -1):
        liar = at(int.from_bytes(victim, "big") + side)
        network.add(liar, [KEYS])
        network.introduce(liar, network.rng.sample(network.members(KEYS)[:100], 5), KEYS)
        network.silent[liar] = None
    network.converge(KEYS, 20)
    for _ in range(3):
        network.round()
    truth = network.sides(KEYS)[victim]
    assert {truth[0][0], truth[1][0]} == set(network.silent), "they are where they want to be"
    links = network.links(KEYS)
    others = [peer for peer in network.members(KEYS) if peer != victim and peer not in network.silent]
    publishers = network.rng.choices(others, k=2 * QUIET + 200)
    hits = [victim in network.spread(KEYS, publisher, links, 3).hops for publisher in publishers]
    assert mean(hits[:QUIET]) >= 0.7, "shortcuts bring most"
    assert mean(hits[-200:]) >= 0.99


def test_with_a_tenth_of_members_passing_nothing_on_nearly_all_events_reach_nearly_all() -> None:
    network = formed(100)
    network.silent = dict.fromkeys(network.members(KEYS)[:10])
    try:
        honest = [peer for peer in network.members(KEYS) if peer not in network.silent]
        links = network.links(KEYS)
        reached = {}
        for fanout in (2, 3, 5):
            spreads = [network.spread(KEYS, network.rng.choice(honest), links, fanout) for _ in range(60)]
            reached[fanout] = mean(mean(peer in spread.hops for peer in honest) for spread in spreads)
    finally:
        network.silent = {}
    assert reached[2] < reached[3] <= reached[5]
    assert reached[3] >= 0.97
    assert reached[5] >= 0.995


def test_a_topic_with_one_publisher_costs_little_more_than_the_fanout_in_the_long_run() -> None:
    """Neighbours that always get events from us bring none, and look like those who pass nothing on."""
    network = RingNetwork(seed=4)
    network.populate(100, KEYS)
    network.converge(KEYS, 20)
    links, publisher = network.links(KEYS), network.members(KEYS)[0]
    for _ in range(2 * QUIET):
        network.spread(KEYS, publisher, links, 3)
    spreads = [network.spread(KEYS, publisher, links, 3) for _ in range(20)]
    assert {len(spread.hops) for spread in spreads} == {100}
    assert mean(spread.sent for spread in spreads) / 100 <= 3 * 1.1
