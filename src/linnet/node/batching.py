"""Batches the publishes of one loop turn into one command, so that bursts form.

No publish waits for others: those of one turn are sent at its end. The order of calls is kept within a
stream, and every caller gets the outcome of its own events.
"""

from __future__ import annotations

import asyncio

from linnet.core.errors import LinnetError, Refused
from linnet.core.limits import BATCH_EVENTS, BODY_BYTES, BURST_BYTES
from linnet.core.reasons import Reason
from linnet.machine.commands import Ask
from linnet.node.background import Spawn
from linnet.streams.commands import Publish, Published

BATCH_BYTES = 16 * BURST_BYTES
"""The most bytes in one command."""


class _Call:
    """One caller's bodies, and the future that it waits for."""

    __slots__ = ("bodies", "outcome")

    def __init__(self, bodies: tuple[bytes, ...], outcome: asyncio.Future[Published]) -> None:
        self.bodies = bodies
        self.outcome = outcome


class _Batch:
    """Calls that are sent together."""

    __slots__ = ("bytes", "calls", "confirm", "events")

    def __init__(self, confirm: float) -> None:
        self.confirm = confirm
        self.calls: list[_Call] = []
        self.events = 0
        self.bytes = 0

    def has_room(self, confirm: float, events: int, size: int) -> bool:
        return (
            confirm == self.confirm
            and self.events + events <= BATCH_EVENTS
            and self.bytes + size <= BATCH_BYTES
        )


class Batching:
    """Batches the publishes of a loop turn, stream by stream."""

    def __init__(self, ask: Ask, spawn: Spawn) -> None:
        self._ask = ask
        self._spawn = spawn
        self._pending: dict[str, list[_Batch]] = {}

    async def publish(self, stream: str, bodies: tuple[bytes, ...], confirm: float) -> Published:
        """Publish these bodies in this order; if it raises `Refused`, none of them was published."""
        if not bodies:
            raise Refused(Reason.MALFORMED, "nothing to publish")
        longest = max(map(len, bodies))
        if longest > BODY_BYTES:
            raise Refused(Reason.TOO_LARGE, f"a body of {longest} bytes, at most {BODY_BYTES} are allowed")
        size = sum(map(len, bodies))
        if len(bodies) > BATCH_EVENTS or size > BATCH_BYTES:
            raise Refused(
                Reason.TOO_LARGE,
                f"{len(bodies)} bodies of {size} bytes at once, "
                f"at most {BATCH_EVENTS} of {BATCH_BYTES} bytes together are allowed",
            )
        loop = asyncio.get_running_loop()
        call = _Call(bodies, loop.create_future())
        if not self._pending:
            loop.call_soon(self._flush)
        batches = self._pending.setdefault(stream, [])
        if not batches or not batches[-1].has_room(confirm, len(bodies), size):
            batches.append(_Batch(confirm))
        batches[-1].calls.append(call)
        batches[-1].events += len(bodies)
        batches[-1].bytes += size
        return await call.outcome

    def _flush(self) -> None:
        pending, self._pending = self._pending, {}
        for stream, batches in pending.items():
            for batch in batches:
                # Tasks begin in the order in which they are made, so commands keep theirs.
                self._spawn(self._send(stream, batch), f"publish to {stream}")

    async def _send(self, stream: str, batch: _Batch) -> None:
        bodies = tuple(body for call in batch.calls for body in call.bodies)
        try:
            published = await self._ask(Publish(stream, bodies, batch.confirm))
        except LinnetError as error:
            _fail(batch, error)
        except asyncio.CancelledError:
            _fail(batch, Refused(Reason.SHUTDOWN, "the node stopped"))
            raise
        else:
            _share(batch, published)


def _share(batch: _Batch, published: Published) -> None:
    """Give each caller the outcome of its own events."""
    begin = 0
    for call in batch.calls:
        end = begin + len(call.bodies)
        if not call.outcome.done():
            call.outcome.set_result(
                Published(
                    published.topic,
                    published.first + begin,
                    published.ids[begin:end],
                    published.neighbors,
                    published.fates,
                    published.unsent,
                    published.unconfirmed,
                )
            )
        begin = end


def _fail(batch: _Batch, error: LinnetError) -> None:
    for call in batch.calls:
        if not call.outcome.done():
            call.outcome.set_exception(error)
