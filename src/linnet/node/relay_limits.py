"""What the HTTP face of a relay remembers of its callers, all of it bounded: nonces, budgets, answers."""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import Awaitable, Callable

from msgspec import Struct

from linnet.core.errors import Refused
from linnet.core.limits import FRAME_BYTES
from linnet.core.reasons import Reason

EVENTS_PER_SEND = 50
"""Events of one request: as many as a transaction of Matrix's federation has."""
IDS_PER_GET = 100


class RelayHttpLimits(Struct, frozen=True):
    """The bounds of the face."""

    request_bytes: int = FRAME_BYTES * 4 // 3
    """Bytes of one request: what a frame of a link holds, in base64."""
    read_seconds: float = 20.0
    """Seconds that a request's body may take to arrive."""
    answer_seconds: float = 30.0
    """Seconds that the relay may take to answer."""
    in_flight: int = 64
    """Requests that are served at once: with `request_bytes`, what they may hold in memory."""
    address_in_flight: int = 16
    """Of these, from one address: a few that are slow leave room for others. Loopback is exempt."""
    device_rate: float = 10.0
    """Requests a second of one device, for long."""
    device_burst: int = 100
    """Requests of one device at once."""
    address_rate: float = 50.0
    """Requests a second from one address, signed or not. Loopback is exempt: a proxy speaks for many."""
    address_burst: int = 500
    """Requests from one address at once."""
    callers: int = 65_536
    """Devices, and addresses, whose budgets are kept apart; past this the longest silent are forgotten."""
    nonces: int = 262_144
    """Nonces remembered; past this requests are refused until the first may be forgotten."""
    answers: int = 1024
    """Answers of transactions that are remembered, so that a repeated one gets the same."""
    answer_age: float = 600.0
    """Seconds that they are remembered."""


class Budgets:
    """How much each caller may still ask: a bucket that fills steadily (token bucket)."""

    def __init__(self, rate: float, burst: int, callers: int) -> None:
        self._rate = rate
        self._burst = burst
        self._callers = callers
        self._left: dict[bytes, tuple[float, float]] = {}

    def take(self, caller: bytes, now: float) -> float:
        """Take one; the seconds to wait if there is none, else 0."""
        left, since = self._left.pop(caller, (float(self._burst), now))
        left = min(float(self._burst), left + max(0.0, now - since) * self._rate)
        taken = left >= 1.0
        self._left[caller] = (left - 1.0 if taken else left, now)
        if len(self._left) > self._callers:
            self._left.pop(next(iter(self._left)))
        return 0.0 if taken else (1.0 - left) / self._rate


class Nonces:
    """The nonces of requests that could be said again, for as long as they could."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[bytes, None] = {}
        self._ends: list[tuple[float, bytes]] = []

    def knows(self, key: bytes, now: float) -> bool:
        """Whether it was used."""
        while self._ends and self._ends[0][0] < now:
            del self._known[heapq.heappop(self._ends)[1]]
        return key in self._known

    def wait(self, now: float) -> float:
        """Seconds until one more can be remembered; 0 if now."""
        return 0.0 if len(self._known) < self._most else max(1.0, self._ends[0][0] - now)

    def add(self, key: bytes, until: float) -> None:
        """Remember one that is not known, to this time."""
        self._known[key] = None
        heapq.heappush(self._ends, (until, key))


class Answer(Struct, frozen=True):
    """What was answered, or will be."""

    content: bytes
    """Digest of what was asked."""
    at: float
    reply: asyncio.Future[bytes]


class Transactions:
    """The answers to what devices asked under a name of theirs. Asked again, they are given again.

    What failed is not remembered: it may be asked again under the same name.
    """

    def __init__(self, most: int, age: float) -> None:
        self._most = most
        self._age = age
        self._answers: dict[bytes, Answer] = {}

    async def once(
        self, key: bytes, content: bytes, now: float, work: Callable[[], Awaitable[bytes]]
    ) -> bytes | None:
        """The answer, from before or new. None: another content has this name."""
        self._forget(now)
        known = self._answers.get(key)
        if known is not None:
            # Shielded: whoever waits beside the first may go without taking the answer along.
            return await asyncio.shield(known.reply) if known.content == content else None
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._answers[key] = Answer(content, now, reply)
        try:
            reply.set_result(await work())
        except BaseException as error:
            self._answers.pop(key, None)
            told = error if isinstance(error, Exception) else Refused(Reason.SHUTDOWN, "it was cut off")
            reply.set_exception(told)
            reply.exception()  # Seen: nobody else may be waiting.
            raise
        return reply.result()

    def _forget(self, now: float) -> None:
        """Let go of the oldest; those that are being worked on stay."""
        for key, answer in list(self._answers.items()):
            is_due = answer.at < now - self._age or len(self._answers) >= self._most
            if not is_due:
                break
            if answer.reply.done():
                del self._answers[key]


def seconds_text(seconds: float) -> str:
    """Whole seconds, for ``Retry-After``."""
    return str(max(1, math.ceil(seconds)))
