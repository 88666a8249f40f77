"""Admission to a relay's HTTP interface: the checks of a request before it is decoded."""

from __future__ import annotations

import asyncio
import heapq
import ipaddress
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct
from starlette.requests import Request

from linnet.api.openapi import Media
from linnet.core.errors import Refused
from linnet.core.ids import PeerId
from linnet.core.limits import FRAME_BYTES
from linnet.core.reasons import Reason
from linnet.node.relay_protocol import RelayHttpError
from linnet.node.relay_signing import WINDOW_MS, Proof, SignedRequest, check_fresh, check_proof, read_proof


class RelayHttpLimits(Struct, frozen=True):
    """The limits of the HTTP interface."""

    request_bytes: int = FRAME_BYTES * 4 // 3
    """The most bytes of one request: the content of a link's frame, in base64."""
    read_seconds: float = 20.0
    """Seconds that a request's body may take to arrive."""
    answer_seconds: float = 30.0
    """Seconds that the relay may take to answer."""
    in_flight: int = 64
    """Requests that are served at once: with `request_bytes`, this bounds the memory that they take."""
    address_in_flight: int = 16
    """Of these, requests from one address, so that slow ones leave room for others. Loopback is exempt."""
    device_rate: float = 10.0
    """Requests per second from one device, over a long time."""
    device_burst: int = 100
    """Requests from one device at once."""
    address_rate: float = 50.0
    """Requests per second from one address, signed or not. Loopback is exempt: a proxy serves many
    clients."""
    address_burst: int = 500
    """Requests from one address at once."""
    callers: int = 65_536
    """The most devices, and addresses, with separate budgets; beyond this the longest silent are
    forgotten."""
    nonces: int = 262_144
    """The most nonces that are remembered; beyond this, requests are refused until the first can be
    forgotten."""
    answers: int = 1024
    """The most remembered answers of transactions; a repeated request gets the same answer."""
    answer_age: float = 600.0
    """Seconds that they are remembered."""


class Budgets:
    """The requests that each caller may still make: a bucket that fills steadily (token bucket)."""

    def __init__(self, rate: float, burst: int, callers: int) -> None:
        self._rate = rate
        self._burst = burst
        self._callers = callers
        self._left: dict[bytes, tuple[float, float]] = {}

    def take(self, caller: bytes, now: float) -> float:
        """Take one request from a caller's budget; return the seconds to wait if there is none, else 0."""
        left, since = self._left.pop(caller, (float(self._burst), now))
        left = min(float(self._burst), left + max(0.0, now - since) * self._rate)
        taken = left >= 1.0
        self._left[caller] = (left - 1.0 if taken else left, now)
        if len(self._left) > self._callers:
            self._left.pop(next(iter(self._left)))
        return 0.0 if taken else (1.0 - left) / self._rate


class Nonces:
    """The nonces of requests that could be replayed, for as long as they could."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[bytes, None] = {}
        self._ends: list[tuple[float, bytes]] = []

    def knows(self, key: bytes, now: float) -> bool:
        """Return whether a nonce was used."""
        while self._ends and self._ends[0][0] < now:
            del self._known[heapq.heappop(self._ends)[1]]
        return key in self._known

    def wait(self, now: float) -> float:
        """Return the seconds until one more nonce can be remembered; 0: now."""
        return 0.0 if len(self._known) < self._most else max(1.0, self._ends[0][0] - now)

    def add(self, key: bytes, until: float) -> None:
        """Remember a new nonce until this time."""
        self._known[key] = None
        heapq.heappush(self._ends, (until, key))


class Answer(Struct, frozen=True):
    """The answer to a transaction, given or to come."""

    content: bytes
    """The digest of the request."""
    at: float
    reply: asyncio.Future[bytes]


class Transactions:
    """The answers to transactions, by the device's name for them: a repeated request gets the same answer.

    Failures are not remembered: the request may be made again under the same name.
    """

    def __init__(self, most: int, age: float) -> None:
        self._most = most
        self._age = age
        self._answers: dict[bytes, Answer] = {}

    async def once(
        self, key: bytes, content: bytes, now: float, work: Callable[[], Awaitable[bytes]]
    ) -> bytes | None:
        """Return the answer, earlier or new. None: this name was used for other content."""
        self._forget(now)
        known = self._answers.get(key)
        if known is not None:
            # Shielded: a later caller that waits too may go without cancelling the answer.
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
        """Forget the oldest answers, but not those that are in progress."""
        for key, answer in list(self._answers.items()):
            is_due = answer.at < now - self._age or len(self._answers) >= self._most
            if not is_due:
                break
            if answer.reply.done():
                del self._answers[key]


def seconds_text(seconds: float) -> str:
    """Return whole seconds, for ``Retry-After``."""
    return str(max(1, math.ceil(seconds)))


class Door:
    """The signatures, nonces and budgets of one relay.

    Nonces are kept in memory. So that none from before a restart can be used again, a request that is dated
    before the start is refused as ``stale``; the error names the relay's clock.
    """

    def __init__(self, relay: PeerId, clock: Callable[[], float], limits: RelayHttpLimits) -> None:
        self._relay = relay
        self._clock = clock
        self._limits = limits
        self._began_ms = int(clock() * 1000)
        self._devices = Budgets(limits.device_rate, limits.device_burst, limits.callers)
        self._addresses = Budgets(limits.address_rate, limits.address_burst, limits.callers)
        self._nonces = Nonces(limits.nonces)
        self._in_flight: dict[bytes, int] = {}
        """Requests that are being served, by address."""

    @contextmanager
    def admitted(self, request: Request) -> Iterator[None]:
        """Admit a request while the block lasts, within the limits that need no knowledge of the caller."""
        address = _address(request)
        wait = 0.0 if address is None else self._addresses.take(address, self._clock())
        if wait:
            raise RelayHttpError(Reason.FLOODING, "too many requests from this address", retry_after=wait)
        key = b"" if address is None else address
        here = self._in_flight.get(key, 0)
        serving = sum(self._in_flight.values())
        if serving >= self._limits.in_flight or (key and here >= self._limits.address_in_flight):
            detail = f"{serving} requests are being served, {here} of them from this address"
            raise RelayHttpError(Reason.CONGESTED, detail, retry_after=1.0)
        self._in_flight[key] = here + 1
        try:
            yield
        finally:
            self._in_flight[key] -= 1
            if not self._in_flight[key]:
                del self._in_flight[key]

    async def authenticated(self, request: Request) -> tuple[Proof, bytes]:
        """Return the proof of the device that signed this request, and the body. Cheap checks come first."""
        headers = request.headers.getlist("authorization")
        if len(headers) > 1:
            raise RelayHttpError(Reason.MALFORMED, "there are several authorizations")
        proof = read_proof(headers[0] if headers else None)
        check_fresh(proof, self._clock(), self._began_ms)
        body = await self._body(request)
        now = self._clock()
        target = request.scope["raw_path"]
        if request.scope["query_string"]:
            target += b"?" + request.scope["query_string"]
        check_proof(proof, SignedRequest(self._relay, request.method, target, body), now)
        self._spend(proof, now)
        if request.scope["query_string"]:
            raise RelayHttpError(Reason.MALFORMED, "there are no parameters")
        return proof, body

    def _spend(self, proof: Proof, now: float) -> None:
        """Spend the nonce and budget of a request that is known to be genuine.

        A repeated request costs its device nothing, and one that must wait keeps its nonce.
        """
        check_fresh(proof, now, self._began_ms)
        key = proof.device + proof.nonce
        if self._nonces.knows(key, now):
            raise RelayHttpError(Reason.REPEATED_NONCE, "this request was made before")
        wait = self._nonces.wait(now)
        if wait:
            raise RelayHttpError(Reason.CONGESTED, "no more nonces can be remembered", retry_after=wait)
        wait = self._devices.take(proof.device, now)
        if wait:
            raise RelayHttpError(Reason.TOO_MANY, "too many requests of this device", retry_after=wait)
        self._nonces.add(key, (proof.ts + WINDOW_MS) / 1000 + 1.0)

    async def _body(self, request: Request) -> bytes:
        form = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if form != Media.JSON:
            raise RelayHttpError("not_json", f"the content type is {form[:80]!r}", 415, f"send {Media.JSON}")
        limit = self._limits.request_bytes
        content = bytearray()
        try:
            async with asyncio.timeout(self._limits.read_seconds):
                async for chunk in request.stream():
                    content += chunk
                    if len(content) > limit:
                        raise RelayHttpError(Reason.TOO_LARGE, f"a request has at most {limit} bytes")
        except TimeoutError as error:
            raise RelayHttpError(Reason.TIMEOUT, "the body did not arrive in time", 408) from error
        return bytes(content)


def _address(request: Request) -> bytes | None:
    """Return the address of a request, as far as budgets distinguish them; None for this machine."""
    try:
        address = ipaddress.ip_address("" if request.client is None else request.client.host)
    except ValueError:
        return None
    if address.is_loopback:
        return None
    # A holder of one IPv6 address has 2**64 of them.
    return address.packed[:8]
