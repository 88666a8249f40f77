"""Who may come in: what is checked of a request to a relay's HTTP face before it is understood."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.requests import Request

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.node.operation import Form
from linnet.node.relay_http_errors import RelayHttpError
from linnet.node.relay_limits import Budgets, Nonces, RelayHttpLimits
from linnet.node.relay_signing import WINDOW_MS, Proof, check_fresh, check_proof, read_proof


class Door:
    """Signatures, nonces and budgets of one relay.

    Nonces are kept in memory. So that none from before a restart can be used again, a request that
    is dated before the start is refused as ``stale``, with the relay's clock in its words.
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
        """Requests that are being served, by where they come from."""

    @contextmanager
    def admitted(self, request: Request) -> Iterator[None]:
        """Serve a request, within the bounds that hold before anything is known of the asker."""
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
        """The device that signed this request, and the request's body. What costs least is checked first."""
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
        check_proof(proof, self._relay, request.method, target, body, now)
        self._spend(proof, now)
        if request.scope["query_string"]:
            raise RelayHttpError(Reason.MALFORMED, "there are no parameters")
        return proof, body

    def _spend(self, proof: Proof, now: float) -> None:
        """Take nonce and budget of a request that is known to be genuine.

        A repeated one costs its device nothing, and one that must wait has not used up its nonce.
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
        if form != Form.JSON:
            raise RelayHttpError("not_json", f"the content type is {form[:80]!r}", 415, f"send {Form.JSON}")
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
    """Where a request comes from, as far as budgets keep apart; None for this machine."""
    try:
        address = ipaddress.ip_address("" if request.client is None else request.client.host)
    except ValueError:
        return None
    if address.is_loopback:
        return None
    # Who has one IPv6 address has 2**64 of them.
    return address.packed[:8]
