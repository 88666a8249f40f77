from __future__ import annotations

import asyncio

import pytest

from linnet.node.background import Background


async def test_tasks_end_with_the_block() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with asyncio.timeout(10), Background() as background:
        background.spawn(work(), "work")
        await asyncio.sleep(0)
    assert ended.is_set()


async def _fail() -> None:
    raise ValueError("broken")


async def _block_with_a_failing_task() -> None:
    async with asyncio.timeout(10), Background() as background:
        background.spawn(_fail(), "fail")
        await asyncio.Event().wait()


async def test_a_failing_task_ends_the_block() -> None:
    with pytest.raises(BaseExceptionGroup) as caught:
        await _block_with_a_failing_task()
    assert caught.group_contains(ValueError, match="broken")


async def test_finish_waits_for_what_is_under_way() -> None:
    done = asyncio.Event()

    async def work() -> None:
        await asyncio.sleep(0)
        done.set()

    async with Background() as background:
        background.spawn(work(), "work")
        await background.finish(10)
        assert done.is_set()
        background.spawn(asyncio.sleep(3600), "sleep")
        await background.finish(0.01)
