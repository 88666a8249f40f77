"""A program beside a node that runs already: the calls of `Node` for streams, answered by that node.

::

    async with Node.attach("~/.linnet") as node:
        await node.publish("weather", b"rain")
        async for event in node.subscribe("weather", since=0):
            ...

It speaks the control API (docs/adr/0007-control-api.md). The home belongs to the node that runs there; any
number of programs may be beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast

from linnet.core.errors import LinnetError, Refused
from linnet.core.reasons import Reason
from linnet.delivery.items import CaughtUp, Ended, Item, Missed
from linnet.event.event import Event
from linnet.node.attached_items import item_of, published_of
from linnet.node.client import ControlClient, ControlError, NodeUnreachable
from linnet.node.control_types import ItemView, SubscribedView
from linnet.node.status_types import StatusReply
from linnet.node.subscription import MISSED_KEPT
from linnet.streams.commands import Published

T = TypeVar("T")


class AttachedNode:
    """The node of a home that another process runs; made by `Node.attach`, used by ``async with``.

    Every call raises `NodeUnreachable` if no node answers there.
    """

    def __init__(self, home: Path | str | None = None) -> None:
        """The home of the running node; ``LINNET_HOME`` or ``~/.linnet`` if none is given."""
        self._home = None if home is None else Path(home)
        self._control: ControlClient | None = None

    async def __aenter__(self) -> Self:
        self._control = ControlClient(self._home)
        try:
            await self.status()
        except BaseException:
            self._control.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None

    async def publish(
        self, stream: str, bodies: bytes | str | Iterable[bytes | str], confirm: float = 0.0
    ) -> Published:
        """See `Node.publish`."""
        if isinstance(bodies, bytes | str):
            bodies = (bodies,)
        given = [body.encode() if isinstance(body, str) else bytes(body) for body in bodies]
        control = self._open()
        return published_of(await _called(lambda: control.publish(stream, given, confirm)))

    def subscribe(
        self,
        stream: str,
        since: float | None = None,
        name: str | None = None,
        ordered: bool = True,
        live: bool = True,
        receipts: bool = False,
    ) -> AttachedSubscription:
        """See `Node.subscribe`."""
        self._open()
        reading, telling = ControlClient(self._home), ControlClient(self._home)
        durable = name is not None

        def begin() -> Iterator[ItemView]:
            return reading.subscribe(stream, since, name, ordered, live, receipts, manual=durable)

        return AttachedSubscription(stream, begin, reading, telling, durable)

    def history(self, stream: str, since: float = 0.0) -> AttachedSubscription:
        """See `Node.history`."""
        return self.subscribe(stream, since, live=False)

    async def status(self) -> StatusReply:
        """How things stand, as ``linnet status --json`` tells it."""
        return await _called(self._open().status)

    def _open(self) -> ControlClient:
        if self._control is None:
            raise NodeUnreachable("not attached: use it inside `async with`")
        return self._control


class AttachedSubscription:
    """One subscription at a running node; made by `AttachedNode.subscribe`. For one reader.

    What a durable one was handed counts as handled when the next item is asked for.
    """

    def __init__(
        self,
        stream: str,
        begin: Callable[[], Iterator[ItemView]],
        reading: ControlClient,
        telling: ControlClient,
        durable: bool,
    ) -> None:
        self._stream = stream
        self._begin = begin
        self._reading = reading
        self._telling_to = telling
        self._is_durable = durable
        self._lines: Iterator[ItemView] | None = None
        self._using = threading.Lock()
        """Held by the thread that reads or ends the lines."""
        self._number = 0
        self._handled = 0
        self._telling: asyncio.Task[None] | None = None
        self._within_block = False
        self.resumed = False
        """Whether a durable subscription of this name was found."""
        self.missed: deque[Missed] = deque(maxlen=MISSED_KEPT)
        """The ranges that could not be had, the latest of them."""
        self.caught_up: CaughtUp | None = None
        """Set when history was handed over."""

    async def __aenter__(self) -> Self:
        await self._start()
        self._within_block = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __aiter__(self) -> AsyncIterator[Event]:
        """The events alone. `Refused` if the subscription is ended by anyone but us."""
        return cast("AsyncIterator[Event]", self._read(events_only=True))

    def items(self) -> AsyncIterator[Item]:
        """Everything that is handed over: events, what was missed, that history is over, the end."""
        return self._read(events_only=False)

    async def acknowledge(self) -> None:
        """Return when all that was handled is durable; of a durable subscription."""
        if self._telling is not None:
            await self._telling
        if self._handled:
            await self._tell()

    async def close(self) -> None:
        """Unsubscribe; a durable one keeps its place."""
        lines, self._lines = self._lines, None
        try:
            with contextlib.suppress(LinnetError):
                await self.acknowledge()
        finally:
            if lines is not None:
                await asyncio.to_thread(self._end, lines)
            self._reading.close()
            self._telling_to.close()

    def _end(self, lines: Iterator[ItemView]) -> None:
        with self._using:
            if isinstance(lines, Generator):
                lines.close()

    async def _read(self, events_only: bool) -> AsyncIterator[Item]:
        try:
            await self._start()
            while True:
                item = await self._next()
                if type(item) is Event or not events_only:
                    yield item
                elif isinstance(item, Ended) and item.reason is not None:
                    raise Refused(item.reason, f"the subscription of {self._stream!r} ended")
                self._count()
                if isinstance(item, Ended):
                    return
        finally:
            if not self._within_block:
                await self.close()

    async def _start(self) -> None:
        if self._lines is not None:
            return
        self._lines = self._begin()
        try:
            first = await self._line()
        except BaseException:
            await self.close()
            raise
        if isinstance(first, SubscribedView):
            self._number, self.resumed = first.subscription, first.resumed

    async def _next(self) -> Item:
        while True:
            line = await self._line()
            item = Ended(Reason.SHUTDOWN) if line is None else item_of(line)
            if item is None:
                continue
            match item:
                case Missed():
                    self.missed.append(item)
                case CaughtUp():
                    self.caught_up = item
                case _:
                    pass
            return item

    async def _line(self) -> ItemView | None:
        """The next line; None if the node ends the answer without a word."""
        lines = self._lines
        if lines is None:
            return None

        def read() -> ItemView | None:
            with self._using:
                return next(lines, None)

        try:
            return await _called(read)
        except asyncio.CancelledError:
            # A thread reads, and nothing but the end of its socket can wake it.
            self._reading.cut()
            raise

    def _count(self) -> None:
        if self._is_durable:
            self._handled += 1
            if self._telling is None or self._telling.done():
                self._telling = asyncio.get_running_loop().create_task(self._tell())

    async def _tell(self) -> None:
        """Acknowledge, again as long as more was handled meanwhile."""
        while self._handled:
            handled, self._handled = self._handled, 0
            await asyncio.to_thread(self._telling_to.consumed, self._number, handled)


async def _called(call: Callable[[], T]) -> T:
    """Call the node in a thread; what it declines is `Refused`, as in a node of one's own."""
    try:
        return await asyncio.to_thread(call)
    except ControlError as error:
        if error.reason in set(Reason):
            raise Refused(Reason(error.reason), error.detail) from error
        raise
