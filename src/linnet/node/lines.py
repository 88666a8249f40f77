"""A subscription as a response: one JSON value per line, for as long as both sides want it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from linnet.delivery.items import Ended, Item
from linnet.node.control_types import HeartbeatView, ItemView, SubscribedView
from linnet.node.operation import Form

HEARTBEAT = 15.0
"""Seconds of silence after which a line says that the subscription lives."""

ITEMS_PER_WRITE = 256
"""Items that are written at once: few enough that a reader sees the first of them soon."""

Beside = Callable[[Sequence[Item]], Awaitable[Sequence[ItemView]]]
"""What is to be said beside these items, before them; asked with none of them at first."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_encode = msgspec.json.Encoder().encode


class Source(Protocol[T_co]):
    """What lines are written of: a subscription."""

    @property
    def number(self) -> int:
        """What it is called at its node."""

    @property
    def resumed(self) -> bool:
        """Whether a durable one of this name was there before."""

    @property
    def unhandled(self) -> int:
        """What was taken and not handled yet."""

    async def open(self) -> None:
        """Begin."""

    async def close(self) -> None:
        """End."""

    async def take(self, most: int) -> Sequence[T_co]:
        """What comes next, at least one."""

    def handled(self, items: int, /) -> None:
        """So many of those are done with."""

    async def consume(self, items: int, /) -> None:
        """The same; returns when it is durable."""


class Lines(Response, Generic[T]):
    """Writes what a subscription hands over, and closes it whatever happens to the caller."""

    media_type = Form.LINES.value

    def __init__(
        self,
        subscription: Source[T],
        is_manual: bool,
        closed: Callable[[Source[T]], None],
        view: Callable[[T], Struct],
        beside: Callable[[Sequence[T]], Awaitable[Sequence[Struct]]] | None = None,
    ) -> None:
        super().__init__()
        # How much comes is not known before it has come.
        del self.headers["content-length"]
        self._subscription = subscription
        self._is_manual = is_manual
        self._closed = closed
        self._view = view
        self._beside = beside

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve until the subscription ends or the caller is gone."""
        try:
            async with asyncio.TaskGroup() as tasks:
                writing = tasks.create_task(self._write(send), name="write a subscription")
                watching = tasks.create_task(_gone(receive), name="watch for the caller's end")
                writing.add_done_callback(lambda _: watching.cancel())
                watching.add_done_callback(lambda _: writing.cancel())
        finally:
            self._closed(self._subscription)
            await self._subscription.close()

    async def _write(self, send: Send) -> None:
        subscription = self._subscription
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await _chunk(
            send, [SubscribedView(subscription.number, subscription.resumed), *await self._aside(())]
        )
        is_over = False
        while not is_over:
            try:
                async with asyncio.timeout(HEARTBEAT):
                    items = await subscription.take(ITEMS_PER_WRITE)
            except TimeoutError:
                await _chunk(send, [HeartbeatView()])
                continue
            await _chunk(send, [*await self._aside(items), *map(self._view, items)])
            if not self._is_manual:
                subscription.handled(len(items))
            is_over = any(isinstance(item, Ended) for item in items)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _aside(self, items: Sequence[T]) -> Sequence[Struct]:
        return () if self._beside is None else await self._beside(items)


async def _chunk(send: Send, views: Iterable[Struct]) -> None:
    body = b"".join(_encode(view) + b"\n" for view in views)
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
