"""The order of things to come."""

from __future__ import annotations

from heapq import heappop
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.due import Due
from tests.machines import Scripted

from linnet.sim.clock import Clock
from linnet.sim.wires import Host, HostSettings
from linnet.testing.networks import named_peer


@given(st.lists(st.integers(min_value=0, max_value=5)))
def test_entries_come_by_time_and_then_in_the_order_they_were_put(times: list[int]) -> None:
    clock = Clock(start=0.0)
    for number, time in enumerate(times):
        clock.push(float(time), "what", number)
    popped = [heappop(clock.heap) for _ in times]
    assert [(entry[0], entry[3]) for entry in popped] == sorted((float(t), n) for n, t in enumerate(times))


def timers_due(clock: Clock) -> list[tuple[float, int, str]]:
    """Run a clock that has timers alone: when each runs out, its number and name."""
    due = []
    while clock.heap:
        time, number, what, argument = heappop(clock.heap)
        clock.now = time
        if isinstance(what, Host):
            clock.waiting -= 1
            if what.ticks.get(argument) == number:
                due.append((time, number, argument.what))
        else:
            what(*argument)
    return due


@pytest.mark.parametrize("start", [0.0, 0.75, 1_600_000_000.0])
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 40))))
def test_timers_come_as_if_all_were_in_one_heap(start: float, settings: list[tuple[str, int]]) -> None:
    clock = Clock(start)
    host = Host(named_peer("host"), Scripted(), "anywhere", Random(1), HostSettings(True, None, None))
    latest: dict[str, tuple[float, int]] = {}
    for number, (name, tenths) in enumerate(settings):
        time = start + tenths / 10
        clock.set_timer(time, host, Due(name))
        latest[name] = (time, number)
    assert clock.waiting == len(clock.heap)
    expected = sorted((time, number, name) for name, (time, number) in latest.items())
    assert timers_due(clock) == expected
    assert clock.waiting == 0


def test_timers_that_were_set_anew_do_not_crowd_the_heap() -> None:
    clock = Clock(0.0)
    host = Host(named_peer("host"), Scripted(), "anywhere", Random(1), HostSettings(True, None, None))
    for _ in range(1000):
        clock.set_timer(5.0, host, Due("ping"))
    assert len(clock.heap) == 1
    _, _, begin, argument = heappop(clock.heap)
    begin(*argument)
    assert [entry[3] for entry in clock.heap] == [Due("ping")]
