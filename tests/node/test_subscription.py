from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

import pytest

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Consumed, Unsubscribe
from linnet.delivery.items import CaughtUp, Ended, Item, Missed
from linnet.event.event import Event
from linnet.event.signing import message_tail
from linnet.machine.commands import Command, Declined, Done, answer_to
from linnet.net.failure import DriverStopped
from linnet.node.background import Background
from linnet.node.subscription import Subscription
from linnet.peer.interface import AnyCommand
from linnet.streams.commands import Subscribe, Subscribed

R = TypeVar("R")
TOPIC = TopicId(bytes(32))
AUTHOR = AuthorId(bytes(32))
DEVICE = DeviceId(bytes(8))
COMMAND = Subscribe(7, "s")
CAUGHT_UP = CaughtUp(None, False, None)


def event(number: int) -> Event:
    tail = message_tail(b"%d" % number, 0)
    return Event(EventId(number.to_bytes(32, "big")), TOPIC, AUTHOR, DEVICE, number, None, tail)


class Machine:
    """Answers as the node machine does, and keeps what it was asked."""

    def __init__(self, background: Background) -> None:
        self.asked: list[AnyCommand] = []
        self.answer: object = Subscribed(TOPIC, False)
        self.stopped = False
        self.registered: list[tuple[int, bool]] = []
        self.unsubscribed = asyncio.Event()
        self.reported = asyncio.Event()
        self.writes = asyncio.Event()
        """Set while what is consumed can be written down."""
        self.writes.set()
        self.subscription = Subscription(COMMAND, self.ask, background.spawn, self.register)

    async def ask(self, command: Command[R]) -> R:
        if self.stopped:
            raise DriverStopped("stopped")
        self.asked.append(command)
        if isinstance(command, Unsubscribe):
            self.unsubscribed.set()
        await asyncio.sleep(0)
        if isinstance(command, Consumed):
            self.reported.set()
            await self.writes.wait()
        return answer_to(command, self.answer if isinstance(command, Subscribe) else Done())

    def register(self, subscription: Subscription, is_open: bool) -> None:
        self.registered.append((subscription.number, is_open))

    @property
    def consumed(self) -> list[int]:
        return [command.items for command in self.asked if isinstance(command, Consumed)]


@pytest.fixture
async def machine() -> AsyncIterator[Machine]:
    async with asyncio.timeout(20), Background() as background:
        yield Machine(background)


async def test_events_come_in_order_and_the_end_ends_it(machine: Machine) -> None:
    missed = Missed(TOPIC, AUTHOR, DEVICE, 2, 4, Reason.GAP_UNFILLED)
    machine.subscription.deliver((event(1), missed, event(5), CAUGHT_UP, Ended(None)))
    assert [each.seq async for each in machine.subscription] == [1, 5]
    assert (list(machine.subscription.missed), machine.subscription.missed_events) == ([missed], 3)
    assert machine.subscription.caught_up == CAUGHT_UP
    assert machine.subscription.ended == Ended(None)
    assert machine.asked[0] == COMMAND
    assert machine.asked[-1] == Unsubscribe(7)
    assert sum(machine.consumed) == 5
    assert machine.registered == [(7, True), (7, False)]


async def test_items_are_everything_that_was_handed_over(machine: Machine) -> None:
    items: tuple[Item, ...] = (event(1), CAUGHT_UP, Ended(Reason.SHUTDOWN))
    machine.subscription.deliver(items)
    assert tuple([item async for item in machine.subscription.items()]) == items


async def test_an_end_that_nobody_asked_for_is_an_error(machine: Machine) -> None:
    machine.subscription.deliver((event(1), Ended(Reason.SUBSCRIBER_SLOW)))
    events = aiter(machine.subscription)
    assert (await anext(events)).seq == 1
    with pytest.raises(Refused) as caught:
        await anext(events)
    assert caught.value.reason is Reason.SUBSCRIBER_SLOW


async def test_a_refusal_is_an_error_at_once(machine: Machine) -> None:
    machine.answer = Declined(Reason.NOT_JOINED, "no")
    with pytest.raises(Refused) as caught:
        await machine.subscription.open()
    assert caught.value.reason is Reason.NOT_JOINED
    assert machine.registered == [(7, True), (7, False)]


async def test_what_was_handled_is_told_when_the_reader_waits(machine: Machine) -> None:
    async with machine.subscription as subscription:
        subscription.deliver(tuple(map(event, range(10))))
        items = subscription.items()
        for _ in range(10):
            await anext(items)
        assert machine.consumed == []
        asyncio.get_running_loop().call_later(0.05, subscription.deliver, (event(10),))
        assert await anext(items) == event(10)
        assert machine.consumed == [10]


async def test_a_reader_without_a_pause_tells_now_and_then(machine: Machine) -> None:
    async with machine.subscription as subscription:
        subscription.deliver(tuple(map(event, range(3 * Subscription.TELL_ITEMS + 5))))
        items = subscription.items()
        for _ in range(3 * Subscription.TELL_ITEMS + 1):
            await anext(items)
            await asyncio.sleep(0)
        assert machine.consumed == [Subscription.TELL_ITEMS] * 3
    # The last one taken was never said to be handled.
    assert sum(machine.consumed) == 3 * Subscription.TELL_ITEMS


async def test_acknowledge_tells_at_once_and_counts_the_one_in_hand(machine: Machine) -> None:
    async with machine.subscription as subscription:
        subscription.deliver(tuple(map(event, range(3))))
        items = subscription.items()
        await anext(items)
        await anext(items)
        await subscription.acknowledge()
        assert machine.consumed == [2]
        await subscription.acknowledge()
        assert machine.consumed == [2]


async def test_leaving_the_loop_unsubscribes(machine: Machine) -> None:
    machine.subscription.deliver((event(1), event(2)))
    async for _ in machine.subscription:
        break
    await machine.unsubscribed.wait()
    assert machine.consumed in ([], [1])


async def test_within_a_block_it_can_be_read_again(machine: Machine) -> None:
    async with machine.subscription as subscription:
        subscription.deliver((event(1), event(2)))
        async for each in subscription:
            assert each.seq == 1
            break
        async for each in subscription:
            assert each.seq == 2
            break
    assert machine.asked[-1] == Unsubscribe(7)


async def test_a_stopped_node_is_no_trouble_at_the_end(machine: Machine) -> None:
    async with machine.subscription as subscription:
        subscription.deliver((event(1), Ended(Reason.SHUTDOWN)))
        await subscription.take(1)
        machine.stopped = True
    assert machine.registered[-1] == (7, False)


async def test_what_was_not_handled_is_not_told(machine: Machine) -> None:
    async with machine.subscription as subscription:
        subscription.deliver(tuple(map(event, range(4))))
        assert len(await subscription.take(3)) == 3
        assert subscription.unhandled == 3
        await subscription.consume(2)
    assert machine.consumed == [2]


async def test_a_reader_that_never_waits_starts_one_task_to_tell(machine: Machine) -> None:
    spawned: list[str] = []

    async with Background() as background:

        def spawn(work: Coroutine[Any, Any, None], name: str) -> object:
            spawned.append(name)
            return background.spawn(work, name)

        subscription = Subscription(COMMAND, machine.ask, spawn, machine.register)
        async with subscription:
            subscription.deliver(tuple(map(event, range(4 * Subscription.TELL_ITEMS))))
            events = aiter(subscription)
            for _ in range(4 * Subscription.TELL_ITEMS):
                await anext(events)
            assert spawned == ["acknowledge items of 7"]
        assert sum(machine.consumed) == 4 * Subscription.TELL_ITEMS - 1


async def next_of(items: AsyncIterator[Item]) -> Item:
    return await anext(items)


async def test_it_is_closed_only_when_a_report_that_is_under_way_has_been_answered(machine: Machine) -> None:
    machine.writes.clear()
    subscription = machine.subscription
    subscription.deliver((event(1),))
    items = subscription.items()
    async with subscription, asyncio.TaskGroup() as tasks:
        await anext(items)
        waiting = tasks.create_task(next_of(items))  # The first counts as handled, and is reported.
        await machine.reported.wait()
        closing = tasks.create_task(subscription.close())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not machine.unsubscribed.is_set()
        machine.writes.set()
        await closing
        assert machine.asked[-2:] == [Consumed(7, 1), Unsubscribe(7)]
        assert await waiting == Ended(None)


async def test_to_acknowledge_is_to_wait_for_earlier_reports_too(machine: Machine) -> None:
    machine.writes.clear()
    subscription = machine.subscription
    subscription.deliver((event(1), event(2)))
    items = subscription.items()
    async with subscription, asyncio.TaskGroup() as tasks:
        await anext(items)
        await anext(items)
        tasks.create_task(next_of(items))  # Both count as handled, and are being reported.
        await machine.reported.wait()
        acknowledging = tasks.create_task(subscription.acknowledge())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not acknowledging.done()
        machine.writes.set()
        await acknowledging
        subscription.deliver((Ended(None),))
