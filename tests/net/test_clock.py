from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from tests.due import Due

from linnet.core.timers import Timer
from linnet.net.clock import Clock, Timers


class Hands:
    """The hands of both clocks, moved by a test."""

    def __init__(self) -> None:
        self.wall = 1_700_000_000.0
        self.monotonic = 50.0

    def clock(self) -> Clock:
        return Clock(lambda: self.wall, lambda: self.monotonic)


def test_time_is_unix_time_at_start_and_monotonic_since() -> None:
    hands = Hands()
    clock = hands.clock()
    assert clock.now() == 1_700_000_000.0
    hands.monotonic += 7.5
    hands.wall += 100.0
    assert clock.now() == 1_700_000_007.5


def test_a_step_is_told_once() -> None:
    hands = Hands()
    clock = hands.clock()
    assert clock.step() is None
    hands.wall += 2.0
    assert clock.step() == 2.0
    assert clock.step() is None
    hands.wall -= 2.0
    assert clock.step() == -2.0
    assert clock.offset == 0.0


def test_a_small_correction_is_no_step_but_many_are() -> None:
    hands = Hands()
    clock = hands.clock()
    steps = []
    for _ in range(5):
        hands.wall += 0.4
        steps.append(clock.step())
    assert [step is not None for step in steps] == [False, False, True, False, False]


def test_a_sleep_of_the_machine_is_a_step() -> None:
    hands = Hands()
    clock = hands.clock()
    hands.wall += 3600.0
    assert clock.step() == 3600.0


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1.0, 1e3)), max_size=30))
def test_time_never_goes_back(moves: list[tuple[float, float]]) -> None:
    hands = Hands()
    clock = hands.clock()
    last = clock.now()
    for wall, monotonic in moves:
        hands.wall += wall
        hands.monotonic += monotonic
        now = clock.now()
        assert now >= last
        last = now


ONE, TWO = Due("one"), Due("two", b"key")


async def test_equal_ticks_are_one_timer() -> None:
    fired: list[Timer] = []
    done = asyncio.Event()

    def fire(tick: Timer) -> None:
        fired.append(tick)
        if tick == TWO:
            done.set()

    timers = Timers(fire)
    timers.set(60.0, ONE)
    timers.set(0.01, Due("one"))
    timers.set(0.02, TWO)
    async with asyncio.timeout(5):
        await done.wait()
    assert fired == [ONE, TWO]


async def test_a_timer_that_fired_can_be_set_again_from_within() -> None:
    fired: list[Timer] = []
    done = asyncio.Event()

    def fire(tick: Timer) -> None:
        fired.append(tick)
        if len(fired) < 3:
            timers.set(0.0, tick)
        else:
            done.set()

    timers = Timers(fire)
    timers.set(0.0, ONE)
    async with asyncio.timeout(5):
        await done.wait()
    assert fired == [ONE, ONE, ONE]


async def test_what_is_cancelled_or_cleared_does_not_fire() -> None:
    fired: list[Timer] = []
    timers = Timers(fired.append)
    timers.set(0.0, ONE)
    timers.cancel(ONE)
    timers.cancel(ONE)
    timers.set(0.0, TWO)
    timers.clear()
    await asyncio.sleep(0.02)
    assert fired == []
