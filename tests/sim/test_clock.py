"""The order of things to come."""

from __future__ import annotations

from heapq import heappop

from hypothesis import given
from hypothesis import strategies as st

from linnet.sim.clock import Clock


@given(st.lists(st.integers(min_value=0, max_value=5)))
def test_entries_come_by_time_and_then_in_the_order_they_were_put(times: list[int]) -> None:
    clock = Clock(start=0.0)
    for number, time in enumerate(times):
        clock.push(float(time), "what", number)
    popped = [heappop(clock.heap) for _ in times]
    assert [(entry[0], entry[3]) for entry in popped] == sorted((float(t), n) for n, t in enumerate(times))
