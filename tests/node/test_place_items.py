"""A subscription of a place over a machine that answers as it is told."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import pytest

from linnet.core.errors import Refused
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Consumed, Unsubscribe
from linnet.delivery.items import Ended
from linnet.machine.commands import Command, Declined, Done, answer_to
from linnet.net.failure import DriverStopped
from linnet.node.background import Background
from linnet.node.place_messages import TELL_BYTES, TELL_ITEMS, PlaceItems
from linnet.peer.interface import AnyCommand
from linnet.places.commands import Watching, WatchPlace
from linnet.places.items import Body, Changed

R = TypeVar("R")
PLACE = TopicId(bytes(32))
COMMAND = WatchPlace(7, PLACE)
CHANGED = Changed(PLACE, 1, "_a", b"1")


class Machine:
    def __init__(self, background: Background) -> None:
        self.asked: list[AnyCommand] = []
        self.answer: object = Watching(PLACE, 3, True)
        self.stopped = False
        self.registered: list[bool] = []
        self.items = PlaceItems(COMMAND, self.ask, background.spawn, self.register)

    async def ask(self, command: Command[R]) -> R:
        if self.stopped:
            raise DriverStopped("stopped")
        self.asked.append(command)
        await asyncio.sleep(0)
        return answer_to(command, self.answer if isinstance(command, WatchPlace) else Done())

    def register(self, items: PlaceItems, is_open: bool) -> None:
        self.registered.append(is_open)

    @property
    def consumed(self) -> list[int]:
        return [command.items for command in self.asked if isinstance(command, Consumed)]


async def test_items_are_read_and_told_as_handled_when_the_next_is_asked_for() -> None:
    async with Background() as background:
        machine = Machine(background)
        async with machine.items as items:
            assert (items.number, items.resumed) == (7, True)
            items.deliver([CHANGED, CHANGED, Ended(None)])
            assert [item async for item in items] == [CHANGED, CHANGED]
        assert machine.consumed == [2]
        assert machine.asked[-1] == Unsubscribe(7)
        assert machine.registered == [True, False]


async def test_the_machine_is_told_by_items_and_by_bytes() -> None:
    async with Background() as background:
        machine = Machine(background)
        items = machine.items
        await items.open()
        items.deliver([CHANGED] * TELL_ITEMS)
        items.handled(len(await items.take(TELL_ITEMS)))
        await asyncio.sleep(0)
        assert machine.consumed == [TELL_ITEMS]
        items.deliver([Body(PLACE, 1, None, 0, bytes(TELL_BYTES), False)])
        await items.take(5)
        assert items.unhandled == 1
        items.handled(1)
        await asyncio.sleep(0)
        assert machine.consumed == [TELL_ITEMS, 1]
        items.deliver([CHANGED])
        await items.take(5)
        await items.acknowledge()
        assert machine.consumed == [TELL_ITEMS, 1, 1]


async def test_an_end_by_the_node_is_an_error_and_stays() -> None:
    async with Background() as background:
        items = Machine(background).items
        await items.open()
        items.deliver([Ended(Reason.SUBSCRIBER_SLOW)])
        with pytest.raises(Refused) as caught:
            _ = [item async for item in items]
        assert caught.value.reason is Reason.SUBSCRIBER_SLOW
        items.deliver([CHANGED])
        assert await items.take(1) == [Ended(Reason.SUBSCRIBER_SLOW)]


async def test_what_is_declined_is_told_and_nothing_stays_registered() -> None:
    async with Background() as background:
        machine = Machine(background)
        machine.answer = Declined(Reason.NOT_JOINED, "enter it first")
        with pytest.raises(Refused, match="enter it first"):
            await machine.items.open()
        assert machine.registered == [True, False]
        await machine.items.close()
        assert len(machine.asked) == 1


async def test_a_node_that_is_gone_ends_it_quietly() -> None:
    async with Background() as background:
        machine = Machine(background)
        await machine.items.open()
        machine.items.deliver([CHANGED])
        await machine.items.take(1)
        machine.items.handled(1)
        machine.stopped = True
        await machine.items.close()
        assert machine.registered == [True, False]
        assert await machine.items.take(1) == [Ended(None)]
