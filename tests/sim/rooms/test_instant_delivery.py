"""Chats through the machines, instant by instant: who had what when, against an oracle of few lines."""

from __future__ import annotations

import os
from random import Random

import pytest

from linnet.core.limits import BODY_BYTES
from linnet.sim.rooms.instant_delivery import Arrival, Instant, PacedFailed, Sending, Stay, instants, replay

CHATS = 60 if os.environ.get("LINNET_SOAK") else 4

Said = list[tuple[int, Sending]]


def oracle(plan: list[Instant], members: int, relays: int) -> tuple[Arrival, ...]:
    """At each instant, all who are online come to have what any of them has, and what relays have."""
    online: set[int] = set()
    had: list[set[int]] = [set() for _ in range(members)]
    kept: set[int] = set()
    arrivals = []
    for instant in plan:
        online = (online - set(instant.offline)) | set(instant.online)
        for sending in instant.sends:
            had[sending.member].add(sending.event)
        pool = kept.union(*(had[member] for member in online))
        kept = set(pool) if relays else set()
        for member in online:
            arrivals += [Arrival(event, member, instant.time) for event in pool - had[member]]
            had[member] |= pool
    return tuple(sorted(arrivals))


def said(*rows: tuple[int, int]) -> Said:
    return [(time, Sending(event, member, 5)) for event, (time, member) in enumerate(rows)]


def random_plan(seed: int) -> tuple[list[Instant], int]:
    """Bursts and breaks, several at one moment, and margins between a moment and the whole chat."""
    luck = Random(seed)
    members = luck.randint(2, 6)
    rows, time = [], 0
    for number in range(luck.randint(10, 40)):
        time += 0 if luck.random() < 0.1 else int(10 ** luck.uniform(0, 5))
        rows.append((time, number if number < members else luck.randrange(members)))
    margin = int(10 ** luck.uniform(0, 5))
    stays = [Stay(member, max(0, time - margin), time + margin) for time, member in rows]
    return instants(said(*rows), stays), members


def test_at_one_instant_people_go_then_come_then_speak() -> None:
    stays = [Stay(0, 0, 10), Stay(1, 10, 20), Stay(0, 30, 40)]
    assert instants([(10, Sending(0, 1, 5)), (30, Sending(1, 0, 5))], stays) == [
        Instant(0, online=(0,)),
        Instant(10, offline=(0,), online=(1,), sends=(Sending(0, 1, 5),)),
        Instant(20, offline=(1,)),
        Instant(30, online=(0,), sends=(Sending(1, 0, 5),)),
        Instant(40, offline=(0,)),
    ]


def test_stays_that_touch_are_one_and_empty_ones_are_none() -> None:
    stays = [Stay(0, 20, 30), Stay(0, 0, 10), Stay(0, 10, 15), Stay(0, 12, 13), Stay(0, 17, 17)]
    comes_and_goes = [(each.time, each.offline, each.online) for each in instants([], stays)]
    assert comes_and_goes == [(0, (), (0,)), (15, (0,), ()), (20, (), (0,)), (30, (0,), ())]


@pytest.mark.parametrize("time", [4, 10, 12])
def test_nobody_speaks_who_is_not_online(time: int) -> None:
    with pytest.raises(ValueError, match=f"member 0 speaks at {time} ms"):
        instants([(time, Sending(0, 0, 5))], [Stay(0, 5, 10), Stay(0, 20, 30)])


def arrivals(sends: Said, stays: list[Stay], members: int, relays: int) -> list[Arrival]:
    return list(replay(instants(sends, stays), members, relays).arrivals)


def test_relays_hold_what_those_who_are_away_get_when_they_come() -> None:
    stays = [Stay(0, 0, 20), Stay(1, 500, 600)]
    assert arrivals(said((10, 0)), stays, 2, 1) == [Arrival(0, 1, 500)]
    assert arrivals(said((10, 0)), stays, 2, 2) == [Arrival(0, 1, 500)]
    assert arrivals(said((10, 0)), stays, 2, 0) == []


def test_without_relays_it_comes_when_both_are_there() -> None:
    stays = [Stay(0, 0, 20), Stay(1, 500, 600), Stay(0, 590, 700)]
    assert arrivals(said((10, 0)), stays, 2, 0) == [Arrival(0, 1, 590)]


def test_without_relays_a_third_may_bring_it_sooner() -> None:
    stays = [Stay(0, 0, 20), Stay(2, 10, 120), Stay(1, 100, 600), Stay(0, 590, 700)]
    assert arrivals(said((10, 0)), stays, 3, 0) == [Arrival(0, 1, 100), Arrival(0, 2, 10)]


def test_who_goes_as_something_is_said_misses_it_and_who_comes_does_not() -> None:
    stays = [Stay(0, 0, 50), Stay(1, 0, 20), Stay(2, 20, 30), Stay(1, 45, 60)]
    assert arrivals(said((20, 0)), stays, 3, 0) == [Arrival(0, 1, 45), Arrival(0, 2, 20)]


def test_nothing_and_too_much_can_be_said() -> None:
    sends = [(10, Sending(0, 0, 0)), (10, Sending(1, 0, BODY_BYTES + 1)), (11, Sending(2, 1, 5))]
    stays = [Stay(0, 0, 20), Stay(1, 10, 30)]
    assert arrivals(sends, stays, 2, 1) == [Arrival(0, 1, 10), Arrival(1, 1, 10), Arrival(2, 0, 11)]


def test_what_is_declined_is_an_error_and_not_a_message_less() -> None:
    plan = [Instant(0, online=(1,)), Instant(5, sends=(Sending(7, 0, 5),))]
    with pytest.raises(PacedFailed, match="event 7 was not said at the instant 5 ms"):
        replay(plan, 2, 0)


def test_a_room_of_one_hears_nothing() -> None:
    assert arrivals(said((10, 0), (20, 0)), [Stay(0, 0, 30)], 1, 1) == []


def test_equal_arguments_give_equal_replays() -> None:
    plan, members = random_plan(5)
    first = replay(plan, members, 1, seed=3)
    assert first == replay(plan, members, 1, seed=3)
    assert first.arrivals == replay(plan, members, 1, seed=4).arrivals
    assert first.instants == len(plan)


@pytest.mark.parametrize("relays", [0, 1, 2])
@pytest.mark.parametrize("seed", range(CHATS))
def test_random_chats_as_the_oracle_says(seed: int, relays: int) -> None:
    plan, members = random_plan(seed)
    result = replay(plan, members, relays, seed)
    assert result.arrivals == oracle(plan, members, relays)
    assert result.held == 0
    assert result.longest < 1.0


@pytest.mark.parametrize("relays", [0, 1])
def test_timers_that_fire_in_between_change_nothing(relays: int) -> None:
    plan, members = random_plan(11)
    result = replay(plan, members, relays, pause=3.0)
    assert result.arrivals == oracle(plan, members, relays)
