"""A program beside a running node: the calls of `Node`, answered by that node.

::

    async with Node.attach("~/.linnet") as node:
        await node.publish("weather", b"rain")
        async for event in node.subscribe("weather", since=0):
            ...

It speaks the control API (docs/adr/0035-derived-control-api.md). The home belongs to the node that runs
there; any number of programs may attach to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from linnet.api.client import Remote
from linnet.api.content import ReadContent
from linnet.api.errors import NodeUnreachable
from linnet.api.items import SubscribedView
from linnet.api.node_commands import ReportStatus, StatusReport
from linnet.api.operations import BY_COMMAND, Operation, offered_by, operation_of
from linnet.content.commands import Standing, SubscribeContent
from linnet.core.errors import LinnetError, Refused
from linnet.core.reasons import Reason
from linnet.delivery.commands import Consumed, Unsubscribe
from linnet.delivery.items import Ended
from linnet.machine.commands import Command, Done, answer_to
from linnet.machine.protocol import Protocol
from linnet.node.background import Background
from linnet.node.client import ControlClient
from linnet.node.facade import NodeFacade
from linnet.node.subscription import Reader
from linnet.peer.config import Surroundings
from linnet.places.commands import Watching, WatchPlace

R = TypeVar("R")


class AttachedNode(NodeFacade):
    """The node of a home that another process runs; made by `Node.attach`, used by ``async with``.

    Every call raises `NodeUnreachable` if no node answers there.
    """

    def __init__(
        self, home: Path | str | None = None, protocols: Iterable[Protocol[Surroundings]] = ()
    ) -> None:
        """Attach to the running node of a home; ``LINNET_HOME`` or ``~/.linnet`` if none is given."""
        self._added = {operation.command: operation for operation in offered_by(protocols)}
        """Operations of protocols that were added to the node."""
        self._home = None if home is None else Path(home)
        self._remote: Remote | None = None
        self._readers: dict[int, Reader[Any, Any]] = {}
        self._readings: dict[int, _Reading] = {}

    async def __aenter__(self) -> Self:
        self._remote = ControlClient(self._home)
        try:
            await self.status()
        except BaseException:
            self._remote.close()
            self._remote = None
            raise
        self._background = await Background().__aenter__()
        self._make_facade(self.ask, self._background.spawn, self._register)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for reading in list(self._readings.values()):
            await reading.end()
        self._readings.clear()
        await self._background.__aexit__(kind, error, trace)
        if self._remote is not None:
            self._remote.close()
            self._remote = None

    async def status(self) -> StatusReport:
        """Return the node's state, as ``linnet status --json`` prints it."""
        return await self.ask(ReportStatus())

    async def ask(self, command: Command[R]) -> R:
        """See `NodeFacade.ask`."""
        self._check_open()
        operation = self._operation_of(command)
        match command:
            case SubscribeContent(number, predicate, name, via, at):
                where = (None, None) if at is None else (at.publisher, at.group)
                flat = ReadContent(number, predicate, name, via, *where)
                return answer_to(command, await self._subscribe(flat))
            case Consumed(subscription, items):
                await self._readings[subscription].consume(items)
                return answer_to(command, Done())
            case Unsubscribe(subscription):
                if reading := self._readings.pop(subscription, None):
                    await reading.end()
                return answer_to(command, Done())
            case _ if operation is not None and operation.item is not None:
                return answer_to(command, await self._subscribe(command))
            case _:
                remote = self._open_remote()
                return await asyncio.to_thread(remote.ask, command, operation)

    async def _subscribe(self, command: Any) -> object:  # noqa: ANN401 - a command that subscribes
        number: int = command.subscription
        reading = _Reading(self._home, command, self._operation_of(command), self._readers[number])
        self._readings[number] = reading
        try:
            began = await reading.begin()
            match command:
                case ReadContent(predicate=predicate):
                    return Standing(predicate, "", began.resumed)
                case WatchPlace(place=place, since=since):
                    return Watching(place, since or 0, began.resumed)
                case _:
                    return began
        except BaseException:
            self._readings.pop(number, None)
            await reading.end()
            raise

    def _operation_of(self, command: Command[Any]) -> Operation | None:
        return self._added.get(type(command)) or BY_COMMAND.get(type(command))

    def _register(self, reader: Reader[Any, Any], is_open: bool) -> None:
        if is_open:
            self._readers[reader.number] = reader
        else:
            self._readers.pop(reader.number, None)

    def _check_open(self) -> None:
        self._open_remote()

    def _open_remote(self) -> Remote:
        if self._remote is None:
            raise NodeUnreachable("not attached: use it inside `async with`")
        return self._remote


class _Reading:
    """A thread that reads the lines of one subscription.

    The machine of the node bounds how much it reads ahead. No item counts as handled before this program says
    so.
    """

    def __init__(
        self, home: Path | None, command: Command[Any], operation: Operation | None, reader: Reader[Any, Any]
    ) -> None:
        self._reading, self._telling = ControlClient(home), ControlClient(home)
        self._command = command
        self._operation = operation or operation_of(command)
        self._reader = reader
        self._loop = asyncio.get_running_loop()
        self._began: asyncio.Future[SubscribedView] = self._loop.create_future()
        self._thread = threading.Thread(target=self._read, name="read a subscription", daemon=True)
        self._is_over = False
        self._telling_lock = asyncio.Lock()

    async def begin(self) -> SubscribedView:
        """Wait until the subscription is open."""
        self._thread.start()
        return await self._began

    async def consume(self, items: int) -> None:
        """Report this many more items as handled; returns when that is durable."""
        number = (await self._began).subscription
        async with self._telling_lock:
            if self._is_over:
                raise Refused(Reason.SHUTDOWN, "the subscription has ended")
            await asyncio.to_thread(self._telling.ask, Consumed(number, items))

    async def end(self) -> None:
        """End the subscription, and join the thread."""
        self._is_over = True
        # The thread reads, and nothing but the end of its socket can wake it.
        self._reading.cut()
        await asyncio.to_thread(self._thread.join)
        self._reading.close()
        async with self._telling_lock:  # A connection that is in use would be kept after this.
            self._telling.close()

    def _read(self) -> None:
        try:
            with contextlib.closing(self._reading.lines(self._command, True, self._operation)) as lines:
                self._hand_over(lines)
        except LinnetError as error:
            self._tell(functools.partial(self._fail, error))
        self._tell(functools.partial(self._reader.deliver, (Ended(Reason.SHUTDOWN),)))

    def _fail(self, error: LinnetError) -> None:
        if not self._began.done():
            self._began.set_exception(error)

    def _hand_over(self, lines: Iterator[Any]) -> None:
        item_form = self._operation.item
        read = None if item_form is None else item_form.read
        for line in lines:
            if isinstance(line, SubscribedView):
                self._tell(functools.partial(self._began.set_result, line))
                continue
            item = line if read is None else read(line)
            if item is not None:
                self._tell(functools.partial(self._reader.deliver, (item,)))
            if self._is_over:
                return

    def _tell(self, act: Callable[[], object]) -> None:
        with contextlib.suppress(RuntimeError):  # The loop is closed: nobody listens any more.
            self._loop.call_soon_threadsafe(act)
