from __future__ import annotations

import asyncio
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import LinnetError, Refused
from linnet.core.ids import EventId, TopicId
from linnet.core.limits import BATCH_EVENTS, BODY_BYTES
from linnet.core.reasons import Reason
from linnet.machine.commands import Command, Declined, answer_to
from linnet.net.failure import DriverStopped
from linnet.node.background import Background
from linnet.node.batching import BATCH_BYTES, Batching
from linnet.streams.commands import Publish, Published

R = TypeVar("R")
TOPIC = TopicId(bytes(32))


class Counting:
    """Answers each publish with the next numbers of its stream; an event's id is its body."""

    def __init__(self) -> None:
        self.asked: list[Publish] = []
        self.said: dict[str, list[bytes]] = {}
        self.error: LinnetError | None = None
        self.declined: Declined | None = None

    async def ask(self, command: Command[R]) -> R:
        publish: object = command
        assert isinstance(publish, Publish)
        self.asked.append(publish)
        if self.error is not None:
            raise self.error
        if self.declined is not None:
            return answer_to(command, self.declined)
        said = self.said.setdefault(publish.stream, [])
        first = len(said)
        said.extend(publish.bodies)
        return answer_to(command, Published(TOPIC, first, tuple(map(EventId, publish.bodies)), 1, ()))


async def test_one_turn_is_one_command_per_stream() -> None:
    machine = Counting()
    async with Background() as background:
        batching = Batching(machine.ask, background.spawn)
        calls = [batching.publish("a", (b"1",), 0.0), batching.publish("b", (b"2",), 0.0)]
        calls += [batching.publish("a", (b"3", b"4"), 0.0), batching.publish("a", (b"5",), 0.0)]
        outcomes = await asyncio.gather(*calls)
        await batching.publish("a", (b"6",), 0.0)
    assert machine.asked == [
        Publish("a", (b"1", b"3", b"4", b"5")),
        Publish("b", (b"2",)),
        Publish("a", (b"6",)),
    ]
    assert [(outcome.first, outcome.ids) for outcome in outcomes] == [
        (0, (b"1",)),
        (0, (b"2",)),
        (1, (b"3", b"4")),
        (3, (b"5",)),
    ]


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.lists(st.binary(max_size=3), min_size=1, max_size=4),
            st.sampled_from([0.0, 1.0]),
            st.booleans(),
        ),
        max_size=20,
    )
)
async def test_order_is_kept_and_each_caller_has_its_own(
    calls: list[tuple[str, list[bytes], float, bool]],
) -> None:
    machine = Counting()
    expected: dict[str, list[bytes]] = {}
    async with Background() as background, asyncio.TaskGroup() as tasks:
        batching = Batching(machine.ask, background.spawn)
        published = []
        for stream, bodies, confirm, pause in calls:
            expected.setdefault(stream, []).extend(bodies)
            published.append(tasks.create_task(batching.publish(stream, tuple(bodies), confirm)))
            if pause:
                await asyncio.sleep(0)
        outcomes = await asyncio.gather(*published)
    assert machine.said == expected
    for (stream, bodies, _, _), outcome in zip(calls, outcomes, strict=True):
        assert list(outcome.ids) == bodies
        assert expected[stream][outcome.first : outcome.first + len(bodies)] == bodies


@pytest.mark.parametrize(
    ("bodies", "reason"),
    [
        ((), Reason.MALFORMED),
        ((bytes(BODY_BYTES + 1),), Reason.TOO_LARGE),
        ((b"",) * (BATCH_EVENTS + 1), Reason.TOO_LARGE),
        ((bytes(BODY_BYTES),) * (BATCH_BYTES // BODY_BYTES + 1), Reason.TOO_LARGE),
    ],
)
async def test_what_is_too_much_is_refused_alone(bodies: tuple[bytes, ...], reason: Reason) -> None:
    machine = Counting()
    async with Background() as background:
        batching = Batching(machine.ask, background.spawn)
        good, bad = await asyncio.gather(
            batching.publish("a", (b"x",), 0.0), batching.publish("a", bodies, 0.0), return_exceptions=True
        )
    assert isinstance(good, Published)
    assert isinstance(bad, Refused)
    assert bad.reason is reason


async def test_no_command_holds_more_than_its_bound() -> None:
    machine = Counting()
    half = (b"x",) * (BATCH_EVENTS // 2 + 1)
    async with Background() as background:
        batching = Batching(machine.ask, background.spawn)
        await asyncio.gather(*(batching.publish("a", half, 0.0) for _ in range(3)))
    assert [len(command.bodies) for command in machine.asked] == [len(half)] * 3


async def test_every_caller_hears_why_not() -> None:
    machine = Counting()
    async with Background() as background:
        batching = Batching(machine.ask, background.spawn)
        machine.declined = Declined(Reason.NOT_A_PUBLISHER, "no")
        both = await asyncio.gather(
            *(batching.publish("a", (b"x",), 0.0) for _ in "12"), return_exceptions=True
        )
        assert [each.reason for each in both if isinstance(each, Refused)] == [Reason.NOT_A_PUBLISHER] * 2
        machine.error = DriverStopped("stopped")
        with pytest.raises(DriverStopped):
            await batching.publish("a", (b"x",), 0.0)


async def test_a_caller_that_gives_up_spoils_nothing_for_others() -> None:
    machine = Counting()
    async with Background() as background, asyncio.TaskGroup() as tasks:
        batching = Batching(machine.ask, background.spawn)
        gone = tasks.create_task(batching.publish("a", (b"1",), 0.0))
        stays = tasks.create_task(batching.publish("a", (b"2",), 0.0))
        await asyncio.sleep(0)
        gone.cancel()
        assert (await stays).ids == (b"2",)
    assert gone.cancelled()
