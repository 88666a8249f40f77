"""A node as a process, as `linnet up` runs it: start order, signals, stop order, nothing else.

Start: home and its lock, store, trace, ports, the machine over its driver, the control API, a relay's HTTP
interface. Stop, on a signal or on request: both interfaces accept no more requests and subscriptions end, the
node leaves its streams, links close, the store closes, the lock is released.
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
from linnet.node.control import Control, serve_control
from linnet.node.descriptors import raise_limit
from linnet.node.home import Home, control_token, home_path
from linnet.node.library import Node
from linnet.node.relay_http import serve_relay_of
from linnet.store.faults import located

STOP_LIMIT = 15.0
"""Seconds from the request to stop until the node is cut off, whatever it still does."""

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

    Calls `ready` once, when the node can be used. A second signal stops it at once.
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
        raise_limit()
        node = await stack.enter_async_context(Node(home_path(home), config))
        section = node.config.control
        if node.home is not None and section.enabled:
            app, path = Control(node, stop.set).app(), node.home.socket(section)
            token = None if section.port is None else control_token(node.home)
            await stack.enter_async_context(serve_control(app, path, section.port, token))
        if node.config.relay.enabled and node.config.relay.http:
            await stack.enter_async_context(serve_relay_of(node))
            node.note_ports()
        # End the readers over the control API before its server waits for their requests.
        stack.callback(node.end_subscriptions)
        if ready is not None:
            ready(node)
        await stop.wait()


@contextlib.contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    """Stop in good order at the first signal; at once at the second, or after a limit."""
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
    """Report event loop errors on standard error, with two exceptions, both from uvloop.

    When the peer of a TLS link is killed just as we write to it, uvloop finds its own transport closed and
    calls that a fatal error. When a dial was given up during its handshake and the peer is killed then,
    uvloop reports a future that nobody awaits any more. The trace has the end of the link and the failure of
    the dial, as for any other.
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
