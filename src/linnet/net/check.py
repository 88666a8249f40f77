"""Checks a connection step by step, to name the first step that fails and give advice.

For `linnet doctor KEY@HOST:PORT`. Nothing is kept: after `Hello` the link is closed again.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from enum import StrEnum

from msgspec import Struct

from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.identity.text import Sort, to_text
from linnet.net.address import Address, parse_address, resolve_host
from linnet.net.config import NetConfig
from linnet.net.failure import LinkFailure
from linnet.net.handshake import FrameStream, read_hello, refuse, send_proof
from linnet.net.tls import NoDeviceKey, client_context, server_key
from linnet.net.tls_connection import TlsConnection
from linnet.net.tls_transport import encrypt, open_socket

_NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
"""OpenSSL's reasons for an answer that is not TLS."""


_CLOSE_SECONDS = 1.0


class Step(StrEnum):
    """The steps of a connection, in their order."""

    RESOLVE = "resolve"
    TCP = "tcp"
    TLS = "tls"
    VERSION = "version"
    SERVER_KEY = "server key"
    CLIENT_AUTHENTICATION = "client authentication"
    HELLO = "hello"


class Checked(Struct, frozen=True):
    """The result of one step."""

    step: Step
    detail: str
    """A description of the result, for people."""
    reason: Reason | None = None
    """The reason of the failure; None: the step succeeded."""
    advice: str = ""
    """Advice for people on the failure."""

    @property
    def ok(self) -> bool:
        """Whether the step succeeded."""
        return self.reason is None


async def check_connection(
    peer: PeerId, hint: str, key: SigningKey, hello: Hello, config: NetConfig
) -> AsyncIterator[Checked]:
    """Dial a peer step by step; the last result is the first failure, or that of `Step.HELLO`.

    Take a key made for this: with the key of a running node the peer would consider its link to that node
    lost, and replace it.
    """
    walk = _Walk(peer, hint, key, hello, config)
    steps = {
        Step.RESOLVE: walk.resolve,
        Step.TCP: walk.connect,
        Step.TLS: walk.encrypt,
        Step.VERSION: walk.version,
        Step.SERVER_KEY: walk.server_key,
        Step.CLIENT_AUTHENTICATION: walk.authenticate,
        Step.HELLO: walk.hello,
    }
    try:
        for step, take in steps.items():
            result = await _result(step, take, config)
            yield result
            if not result.ok:
                return
    finally:
        await walk.close()


async def _result(step: Step, take: Callable[[], Awaitable[str]], config: NetConfig) -> Checked:
    try:
        async with asyncio.timeout(config.dial_timeout):
            return Checked(step, await take())
    except TimeoutError:
        failure = LinkFailure(Reason.DIAL_TIMEOUT, f"no answer within {config.dial_timeout:.0f} s")
    except LinkFailure as error:
        failure = error
    return Checked(step, failure.detail, failure.reason, _advice(step, failure))


class _Walk:
    """The state of one check; every step returns its result for people, or raises `LinkFailure`."""

    def __init__(self, peer: PeerId, hint: str, key: SigningKey, hello: Hello, config: NetConfig) -> None:
        self._peer = peer
        self._hint = hint
        self._key = key
        self._hello = hello
        self._config = config
        self._place: Address
        self._socket: socket.socket | None = None
        self._connection: TlsConnection | None = None
        self._stream: FrameStream
        self._answer: Hello | LinkFailure | None = None

    async def resolve(self) -> str:
        address = parse_address(self._hint)
        places = await resolve_host(address)
        self._place = places[0]
        return f"{address.host} is {', '.join(place.host for place in places)}"

    async def connect(self) -> str:
        self._socket = await open_socket(self._place)
        return f"something listens at port {self._place.port}"

    async def encrypt(self) -> str:
        assert self._socket is not None  # noqa: S101 - the steps have an order
        # Older than we allow on a link, so that a server without anything newer can be named.
        context = client_context(ssl.TLSVersion.TLSv1_2)
        self._connection = await encrypt(self._socket, self._place, context, self._config)
        return "TLS is spoken"

    async def version(self) -> str:
        version = self._open.tls.version()
        if version != "TLSv1.3":
            raise LinkFailure(Reason.TLS_FAILED, f"the server speaks {version} and nothing newer")
        return "TLS 1.3"

    async def server_key(self) -> str:
        found = server_key(self._open.tls.getpeercert(True))
        if found != self._peer:
            raise LinkFailure(Reason.WRONG_KEY, f"this is {to_text(Sort.DEVICE, found)}")
        self._open.remote_key = found
        return "the device that was dialled"

    async def authenticate(self) -> str:
        await self._open.wait_open()
        self._stream = FrameStream(self._open)
        await send_proof(self._stream, self._key, self._hello)
        try:
            self._answer = await read_hello(self._stream, self._hello)
        except LinkFailure as failure:
            if failure.reason is Reason.AUTH_FAILED:
                raise
            self._answer = failure
        return "the peer accepts our key"

    async def hello(self) -> str:
        if isinstance(self._answer, LinkFailure):
            raise self._answer
        assert self._answer is not None  # noqa: S101 - the steps have an order
        refuse(self._stream, Reason.NOT_NEEDED)
        protocols = ", ".join(f"{name} {version}" for name, version in self._answer.protocols.items())
        return f"{self._answer.agent or 'a node'}; protocols: {protocols}"

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            # A caller that ends its loop after this must not leave the connection half closed.
            await asyncio.wait([self._connection.lost], timeout=_CLOSE_SECONDS)
            self._connection.abort()
        elif self._socket is not None:
            self._socket.close()

    @property
    def _open(self) -> TlsConnection:
        assert self._connection is not None  # noqa: S101 - the steps have an order
        return self._connection


_ADVICE = {
    Step.RESOLVE: "Check the address for typing errors: KEY@HOST:PORT, as it is reached from this machine.",
    Step.TCP: "Check that the machine is on, and that host and port are right.",
    Step.TLS: "The port is open, but the connection breaks off: look for a proxy or firewall in between.",
    Step.VERSION: "This is no Linnet node, or a proxy in between takes TLS apart: links need TLS 1.3.",
    Step.SERVER_KEY: (
        "Another device answers there. If the node was set up anew, ask for its new key; "
        "otherwise somebody may be in between."
    ),
    Step.CLIENT_AUTHENTICATION: (
        "The server ended the handshake: it may be no Linnet node, or something in between changes the bytes."
    ),
    Step.HELLO: "The peer refuses this link; its operator can tell why.",
}
_SPECIAL_ADVICE = {
    (Step.TCP, Reason.CONNECTION_REFUSED): (
        "Nothing listens at this port: start the node there (`linnet up`), and check its port."
    ),
    (Step.TCP, Reason.DIAL_TIMEOUT): (
        "The address swallows connections: a firewall, a NAT without port forwarding, or the machine is off."
    ),
    (Step.TCP, Reason.UNREACHABLE): "There is no way to this address: check the network of this machine.",
    (Step.HELLO, Reason.VERSION_MISMATCH): "Update the older of the two nodes.",
    (Step.HELLO, Reason.BLOCKED): "The peer has blocked this device.",
    (Step.HELLO, Reason.TOO_MANY_LINKS): "The peer has as many links as it may have: try again later.",
}


def _advice(step: Step, failure: LinkFailure) -> str:
    if isinstance(failure, NoDeviceKey):
        return "This is a TLS server of another kind, no Linnet node: check the port."
    cause = failure.__cause__
    if step is Step.TLS and isinstance(cause, ssl.SSLError) and (cause.reason or "") in _NOT_TLS:
        return (
            "What listens there does not speak TLS: this is no Linnet node, or the port is another service's."
        )
    return _SPECIAL_ADVICE.get((step, failure.reason), _ADVICE[step])
