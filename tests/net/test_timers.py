from __future__ import annotations

import asyncio

from tests.due import Due

from linnet.core.timers import Timer
from linnet.net.timers import Timers

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
