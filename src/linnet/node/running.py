"""A node as a process: what `linnet up` runs. Start order, signals, stop order, nothing else.

Start: home and its lock, store, trace, ports, the machine over its driver, the control API, a relay's
HTTP face. Stop, on a signal or when asked: both take no more and subscriptions end, the node leaves
its streams, links close, the store closes, the lock goes.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

from linnet.core.errors import StoreError
from linnet.node.config import NodeConfig
from linnet.node.control import Control
from linnet.node.control_server import ControlServer
from linnet.node.descriptors import raise_limit
from linnet.node.home import Home, control_token, home_path
from linnet.node.library import Node
from linnet.node.relay_http_server import relay_server
from linnet.store.faults import located

STOP_LIMIT = 15.0
"""Seconds from the wish to stop until the node is cut off in whatever it still does."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_UVLOOP_CLOSED = "the handler is closed"
T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the fastest event loop that is installed."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.get_loop().set_exception_handler(_told)
        return runner.run(main)


async def run_node(
    home: Path | None = None,
    config: NodeConfig | None = None,
    ready: Callable[[Node], None] | None = None,
) -> None:
    """Run the node of a home until a signal or the control API stops it.

    Calls `ready` once, when the node can be used. A second signal does not wait for good order.
    """
    try:
        await _run_node(home, config, ready)
    except StoreError as error:
        raise located(Home(home_path(home)).store, error) from error


async def _run_node(
    home: Path | None, config: NodeConfig | None, ready: Callable[[Node], None] | None
) -> None:
    stop = asyncio.Event()
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(_signals(stop))
        node = await stack.enter_async_context(Node(home_path(home), config))
        raise_limit(node.config)
        section = node.config.control
        if node.home is not None and section.enabled:
            control = Control(node, stop.set)
            await stack.enter_async_context(_control_server(control, node.home, node.config))
        relay = relay_server(node)
        if relay is not None:
            await stack.enter_async_context(relay)
            node.note_ports()
        # Ends what is read over the control API before its server waits for those requests.
        stack.callback(node.end_subscriptions)
        if ready is not None:
            ready(node)
        await stop.wait()


def _control_server(control: Control, home: Home, config: NodeConfig) -> ControlServer:
    section = config.control
    token = None if section.port is None else control_token(home)
    return ControlServer(control.app(), home.socket(section), section.port, token)


@contextlib.contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    """The first signal stops in good order, the second or a limit at once."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    limit: list[asyncio.TimerHandle] = []

    def cut() -> None:
        if task is not None:
            task.cancel()

    def received() -> None:
        if stop.is_set():
            cut()
        else:
            stop.set()
            limit.append(loop.call_later(STOP_LIMIT, cut))

    for each in _SIGNALS:
        loop.add_signal_handler(each, received)
    try:
        yield
    finally:
        for each in _SIGNALS:
            loop.remove_signal_handler(each)
        for timer in limit:
            timer.cancel()


def _told(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What the event loop has to tell goes to standard error, with two exceptions, both of uvloop.

    A TLS link whose other end is killed just as it is written to: uvloop finds its own transport closed
    and calls that a fatal error. And a dial that was given up while its handshake ran, if the other end is
    killed then: uvloop tells a future that nobody waits for any more. The end of the one and the failure
    of the other are in the trace, as of any other.
    """
    error = context.get("exception")
    is_closed = isinstance(error, RuntimeError) and str(error).endswith(_UVLOOP_CLOSED)
    # Bare, as only uvloop raises it: from a socket it would carry its number.
    is_orphan = isinstance(error, ConnectionResetError) and not error.args and "future" in context
    if not (is_closed or is_orphan):
        loop.default_exception_handler(context)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # There is none for Windows; the standard loop does the same, slower.
        return None
    return uvloop.new_event_loop
