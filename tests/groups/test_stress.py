"""Groups under stress: storms of operations, long absences, partitions that flap (U1 to U9)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from random import Random

import pytest
from tests.groups.watched_world import WatchedWorld

from linnet.groups import agreement
from linnet.groups.labels import MemberId
from linnet.sim.groups.scenario import Course, GroupScenario, divergences, reading, run_groups

SOAK = bool(os.environ.get("LINNET_SOAK"))


def group(members: int, seed: int = 1) -> Course:
    """Half as many devices more than these members, who are at rest."""
    course = Course(GroupScenario(members=members, ops=1, partitions=0, thefts=0, seed=seed))
    course.net.create(0, range(1, members))
    course.settle()
    return course


def id_of(course: Course, place: int) -> MemberId:
    member = course.net.machines[place].state.me
    assert member is not None
    return member


def check(course: Course, present: Iterable[int]) -> None:
    """All agree on who is there; after healing each can speak, and all others read it."""
    net = course.net
    course.settle()
    assert net.members() == list(present)
    assert list(divergences(net)) == []
    assert not any(machine.troubles for machine in net.machines)
    said = []
    for place in net.members():
        said.append(course.speak(place))
        course.settle()
    for id in said:
        assert len(net.said[id].readers) == len(net.members()) - 1
    counts = reading(net)
    assert (counts["unreadable"], counts["misread"]) == (0, 0)


def test_u1_a_storm_of_updates() -> None:
    course = group(16)
    for _ in range(5):
        for place in course.net.members():
            course.net.update(place)
        course.settle()
        assert list(divergences(course.net)) == []
    check(course, range(16))


def test_u2_a_storm_of_additions() -> None:
    course = group(16)
    for place in range(8):
        course.net.add(place, 16 + place)
    check(course, range(24))


def test_u3_a_storm_of_removals() -> None:
    course = group(16)
    for place in range(0, 16, 2):
        course.net.remove(place, [id_of(course, place + 1)])
    check(course, range(0, 16, 2))


@pytest.mark.parametrize("seed", range(6))
def test_u4_races_for_one_device_from_three_sides(seed: int) -> None:
    course, luck = group(4, seed), Random(seed)
    net = course.net
    for _ in range(3):
        target = id_of(course, 3)
        for place in luck.sample(range(3), 3):
            net.remove(place, [target])
        course.settle()
        assert net.members() == [0, 1, 2]
        for place in luck.sample(range(3), 3):
            net.add(place, 3)
        course.settle()
        # It is there three times, and sees to it itself.
        assert course.tidy(3)
        course.settle()
    check(course, range(4))


def test_u5_a_chain_of_additions_beyond_a_partition() -> None:
    course = group(8)
    net = course.net
    net.sides = [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    net.add(7, 8)
    for place in (8, 9, 10):
        course.settle()
        net.add(place, place + 1)
    for place in (0, 1, 2):
        net.update(place)
        course.settle()
    net.remove(3, [id_of(course, 7)])
    course.settle()
    net.sides = [0] * 12
    check(course, (0, 1, 2, 3, 4, 5, 6))  # The chain hangs on one who was removed by one who knew none of it.


@pytest.mark.parametrize("away", [1, 2], ids=["one", "two"])
def test_u6_u7_who_was_away_for_long_comes_back(away: int) -> None:
    """200 operations are missed; two come back at the same time, each with operations of its own."""
    course = group(5)
    net, gone = course.net, range(5 - away, 5)
    net.sides = [1 + place if place in gone else 0 for place in range(course.devices)]
    for turn in range(200 if away == 1 or SOAK else 60):
        if turn % 20 == 10:
            net.publish_keys(5)
            net.add(0, 5)
        elif turn % 20 == 19:
            net.remove(1, [id_of(course, 5)])
        else:
            net.update(turn % 3 % (5 - away))
        course.settle()
    for place in gone if away > 1 else ():
        net.update(place)
        net.say(place, "from far away")
        net.update(place)
    assert max(agreement.pending_by_member(net.machines[0].state).values()) >= 50
    net.sides = [0] * course.devices
    check(course, range(5))


@pytest.mark.parametrize("seed", range(20 if SOAK else 4))
def test_u8_disorder_doubles_and_losses(seed: int) -> None:
    """Each packet comes up to three times, a fifth of them late, all within a window of twelve."""
    course, luck = group(4, seed), Random(seed)
    net = course.net
    given = [len(net.overheard)] * course.devices
    pending: list[list[int]] = [[] for _ in range(course.devices)]
    for turn in range(60):
        place = luck.choice(course.able())
        net.acks(place)
        if turn % 6 == 2 and 4 + turn // 6 % 2 not in net.members():
            course.add(place, 4 + turn // 6 % 2)
        elif turn % 6 == 5 and len(agreement.members(net.machines[place].state)) > 3:
            others = [*agreement.members(net.machines[place].state)]
            others.remove(id_of(course, place))
            net.remove(place, [luck.choice(others)])
        elif not course.tidy(place):
            net.update(place)
        course.speak(luck.choice(course.able()))
        for to in range(course.devices):
            for number in range(given[to], len(net.overheard)):
                if net.overheard[number].device != net.machines[to].state.ours:
                    pending[to] += [number] * luck.choice((1, 1, 2, 3))
            given[to] = len(net.overheard)
            for _ in range(len(pending[to]) - 6):
                at = luck.randrange(min(12, len(pending[to])))
                if luck.random() < 0.8:
                    net.hear(pending[to].pop(at), to)
            net.acks(to)
    course.settle()  # What was lost comes again, and all else once more.
    while sum(course.tidy(place) for place in course.able()):
        course.settle()
    check(course, net.members())


@pytest.mark.parametrize("seed", range(20 if SOAK else 2))
def test_u9_partitions_that_flap(seed: int) -> None:
    scenario = GroupScenario(members=6, ops=60, partitions=12, thefts=2, seed=seed)
    report = run_groups(scenario)
    assert report.ok, report


def test_what_a_removed_member_tells_after_all_know_of_its_removal_is_not_kept() -> None:
    world = WatchedWorld("ABXD", seed=3)
    world.create("A", "BX")
    world.settle()
    x = world.peers["X"].id
    world.add("A", "D")
    for one, two in ("AD", "AB", "DA", "BA", "DB", "BD"):
        while world.deliver(one, two) is not None:
            world.acks(two)
    world.remove("A", "X")
    for one, two in ("AD", "AB", "DB", "BD", "DA", "BA"):
        while world.deliver(one, two) is not None:
            world.acks(two)
    assert x in world.peers["D"].state.closed
    world.deliver("A", "X")  # The addition; of the removal it has not heard.
    assert world.acks("X") is not None
    world.settle()
    state = world.peers["D"].state
    assert x not in state.ratchets
    assert x not in state.channels
    assert not world.peers["D"].faults
