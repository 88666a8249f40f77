from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest
from starlette.types import Message

from linnet.api import server
from linnet.api.items import HeartbeatView, ItemView, item_view
from linnet.api.server import Beside, Lines, Source
from linnet.delivery.items import Item
from linnet.node.library import Node
from linnet.node.subscription import Subscription

LIMIT = 30.0


class Caller:
    """The other end of a response: keeps what it is sent, goes away when told."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[Message] = asyncio.Queue()
        self.gone = asyncio.Event()
        self.closed: list[int] = []

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        await self.sent.put(message)

    def note(self, subscription: Source[Item]) -> None:
        self.closed.append(subscription.number)

    async def next(self) -> Message:
        async with asyncio.timeout(LIMIT):
            return await self.sent.get()

    async def serve(self, subscription: Subscription, beside: Beside | None = None) -> None:
        async with asyncio.timeout(LIMIT):
            await Lines(subscription, False, self.note, item_view, beside)(
                {"type": "http"}, self.receive, self.send
            )


async def test_a_silent_subscription_says_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEARTBEAT", 0.01)
    caller = Caller()
    async with Node() as node, asyncio.TaskGroup() as tasks:
        subscription = node.subscribe("s")
        await subscription.open()
        tasks.create_task(caller.serve(subscription))
        assert (await caller.next())["status"] == 200
        assert json.loads((await caller.next())["body"])["type"] == "subscribed"
        assert json.loads((await caller.next())["body"]) == {"type": "heartbeat"}
        caller.gone.set()
    assert caller.closed == [subscription.number]


async def test_several_items_are_one_write_and_the_end_ends_the_response() -> None:
    caller = Caller()
    async with Node() as node, asyncio.TaskGroup() as tasks:
        subscription = node.subscribe("s")
        await subscription.open()
        await node.publish("s", ["a", "b"])
        node.end_subscriptions()
        await tasks.create_task(caller.serve(subscription))
    messages = [caller.sent.get_nowait() for _ in range(caller.sent.qsize())]
    assert [len(message.get("body", b"").splitlines()) for message in messages] == [0, 1, 3, 0]
    assert messages[-1]["more_body"] is False
    assert json.loads(messages[2]["body"].splitlines()[-1]) == {"type": "ended", "reason": "shutdown"}


async def test_what_is_said_beside_comes_before_what_it_is_about() -> None:
    caller = Caller()
    asked: list[int] = []

    async def beside(items: Sequence[Item]) -> list[ItemView]:
        asked.append(len(items))
        return [HeartbeatView()] if len(asked) == 2 else []

    async with Node() as node, asyncio.TaskGroup() as tasks:
        subscription = node.subscribe("s")
        await subscription.open()
        await node.publish("s", ["a", "b"])
        node.end_subscriptions()
        await tasks.create_task(caller.serve(subscription, beside))
    messages = [caller.sent.get_nowait() for _ in range(caller.sent.qsize())]
    assert asked == [0, 3]
    kinds = [json.loads(line)["type"] for line in messages[2]["body"].splitlines()]
    assert kinds == ["heartbeat", "event", "event", "ended"]
