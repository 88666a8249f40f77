from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.node.relay_admission import Budgets, Nonces, Transactions, seconds_text


def test_a_budget_is_spent_and_fills_again() -> None:
    budgets = Budgets(2.0, 3, 10)
    assert [budgets.take(b"a", 0.0) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert budgets.take(b"a", 0.0) == 0.5
    assert budgets.take(b"b", 0.0) == 0.0
    assert budgets.take(b"a", 0.5) == 0.0
    assert budgets.take(b"a", 0.5) == 0.5
    assert [budgets.take(b"a", 100.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]


def test_the_longest_silent_caller_is_forgotten() -> None:
    budgets = Budgets(1.0, 1, 2)
    for caller in (b"a", b"b", b"a", b"c"):
        budgets.take(caller, 0.0)
    assert budgets.take(b"a", 0.0) > 0  # b went
    assert budgets.take(b"b", 0.0) == 0.0


@given(st.lists(st.floats(0, 5), max_size=200))
def test_no_more_than_rate_and_burst(pauses: list[float]) -> None:
    budgets, now, taken = Budgets(2.0, 5, 10), 0.0, 0
    for pause in pauses:
        now += pause
        taken += budgets.take(b"a", now) == 0.0
    assert taken <= 5 + 2.0 * now + 1e-6


def test_a_nonce_is_known_until_its_end() -> None:
    nonces = Nonces(10)
    assert not nonces.knows(b"a", 0.0)
    nonces.add(b"a", 5.0)
    assert nonces.knows(b"a", 5.0)
    assert not nonces.knows(b"a", 5.1)


def test_a_full_memory_says_how_long_to_wait() -> None:
    nonces = Nonces(2)
    assert nonces.wait(0.0) == 0.0
    nonces.add(b"a", 9.0)
    nonces.add(b"b", 4.0)
    assert nonces.wait(0.0) == 4.0
    assert not nonces.knows(b"c", 4.5)
    assert nonces.wait(4.5) == 0.0
    assert nonces.knows(b"a", 4.5)


async def test_a_transaction_is_done_once() -> None:
    transactions, done = Transactions(10, 60.0), []

    async def work() -> bytes:
        done.append(1)
        return b"answer"

    for now in (0.0, 1.0):
        assert await transactions.once(b"key", b"content", now, work) == b"answer"
    assert done == [1]
    assert await transactions.once(b"key", b"other", 1.0, work) is None
    assert await transactions.once(b"key", b"other", 61.0, work) == b"answer"
    assert done == [1, 1]


async def test_whoever_repeats_while_it_is_worked_on_waits_for_the_same() -> None:
    transactions, begun, release = Transactions(10, 60.0), asyncio.Event(), asyncio.Event()

    async def work() -> bytes:
        begun.set()
        await release.wait()
        return b"answer"

    async def never() -> bytes:
        raise AssertionError

    async with asyncio.TaskGroup() as group:
        first = group.create_task(transactions.once(b"key", b"content", 0.0, work))
        await begun.wait()
        second = group.create_task(transactions.once(b"key", b"content", 0.0, never))
        gone = group.create_task(transactions.once(b"key", b"content", 0.0, never))
        await asyncio.sleep(0)
        gone.cancel()
        release.set()
    assert (first.result(), second.result()) == (b"answer", b"answer")


async def test_what_failed_may_be_asked_again() -> None:
    transactions, release = Transactions(10, 60.0), asyncio.Event()

    async def fails() -> bytes:
        await release.wait()
        raise Refused(Reason.TOO_MANY)

    async def works() -> bytes:
        return b"answer"

    first = asyncio.gather(
        transactions.once(b"key", b"content", 0.0, fails),
        transactions.once(b"key", b"content", 0.0, works),
        return_exceptions=True,
    )
    await asyncio.sleep(0)
    release.set()
    assert [type(each) for each in await first] == [Refused, Refused]
    assert await transactions.once(b"key", b"content", 0.0, works) == b"answer"


async def test_who_waits_beside_one_that_is_cut_off_is_told() -> None:
    transactions = Transactions(10, 60.0)

    async def for_ever() -> bytes:
        await asyncio.Event().wait()
        return b""

    async with asyncio.TaskGroup() as group:
        first = group.create_task(transactions.once(b"key", b"content", 0.0, for_ever))
        await asyncio.sleep(0)
        second = group.create_task(_outcome(transactions.once(b"key", b"content", 0.0, for_ever)))
        await asyncio.sleep(0)
        first.cancel()
    assert isinstance(second.result(), Refused)


async def _outcome(work: object) -> object:
    try:
        return await work  # type: ignore[misc]
    except Refused as error:
        return error


async def test_the_oldest_answers_are_forgotten() -> None:
    transactions, done = Transactions(2, 60.0), []

    async def work() -> bytes:
        done.append(1)
        return b""

    for key in (b"a", b"b", b"c", b"c", b"a"):
        await transactions.once(key, b"", 0.0, work)
    assert len(done) == 4


@pytest.mark.parametrize(("seconds", "text"), [(0.0, "1"), (0.2, "1"), (1.0, "1"), (1.1, "2")])
def test_waits_are_whole_seconds(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text
