"""Those who are no nodes of ours, or bad ones: foreign servers, raw connections."""

from __future__ import annotations

import asyncio
import datetime
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import cast

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from tests.machines import HELLO

from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.identity.keys import SigningKey
from linnet.net.address import parse_address
from linnet.net.config import NetConfig
from linnet.net.driver import default_transports
from linnet.net.handshake import FrameStream, read_hello, send_proof
from linnet.net.tls import client_context, server_context
from linnet.net.transport import find_transport


def foreign_context(key: EllipticCurvePrivateKey) -> ssl.SSLContext:
    """For a TLS server with an ordinary certificate."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "example.org")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC))
        .not_valid_after(datetime.datetime(2099, 1, 1, tzinfo=datetime.UTC))
        .sign(key, SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pair.pem"
        path.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + certificate.public_bytes(Encoding.PEM)
        )
        context.load_cert_chain(path)
    return context


class Speaker(asyncio.Protocol):
    """A connection that says one thing and keeps what it hears."""

    def __init__(self, says: bytes = b"", reads: bool = True) -> None:
        self.heard = bytearray()
        self.closed = asyncio.Event()
        self.arrived = asyncio.Event()
        self._says = says
        self._reads = reads

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self.transport = cast(asyncio.Transport, transport)
        if not self._reads:
            self.transport.pause_reading()
        if self._says:
            self.transport.write(self._says)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self.heard += data
        self.arrived.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self.closed.set()
        self.arrived.set()


@asynccontextmanager
async def foreign_server(context: ssl.SSLContext | None, says: bytes = b"") -> AsyncIterator[str]:
    """A server that says one thing to everyone; gives its address as a hint."""
    speakers: list[Speaker] = []

    def accept() -> Speaker:
        speakers.append(Speaker(says))
        return speakers[-1]

    server = await asyncio.get_running_loop().create_server(accept, "127.0.0.1", 0, ssl=context)
    try:
        yield f"tls://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for speaker in speakers:
            if hasattr(speaker, "transport"):
                speaker.transport.abort()
                await speaker.closed.wait()


class _Side(asyncio.Protocol):
    """One side of a relay: what it hears the other side says."""

    def __init__(self) -> None:
        self.other: _Side | None = None
        self.transport: asyncio.Transport | None = None
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self.transport = cast(asyncio.Transport, transport)
        for data in self._early:
            self.transport.write(data)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        assert self.other is not None
        self.other.say(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        other = None if self.other is None else self.other.transport
        # Closed twice, a TLS transport of Python 3.11.2 cannot be aborted any more.
        if other is not None and not other.is_closing():
            other.close()

    def say(self, data: bytes) -> None:
        """Pass this on, as soon as there is somebody."""
        if self.transport is None:
            self._early.append(data)
        else:
            self.transport.write(data)


@asynccontextmanager
async def relay(key: SigningKey, target: str) -> AsyncIterator[str]:
    """A man in the middle: TLS with a key of its own, and the bytes inside passed on to a target."""
    loop = asyncio.get_running_loop()
    port = parse_address(target).port
    sides: list[_Side] = []
    async with asyncio.TaskGroup() as group:

        async def connect(far: _Side) -> None:
            await loop.create_connection(
                lambda: far, "127.0.0.1", port, ssl=client_context(), server_hostname=""
            )

        def accept() -> _Side:
            near, far = _Side(), _Side()
            near.other, far.other = far, near
            sides.extend((near, far))
            group.create_task(connect(far))
            return near

        server = await loop.create_server(accept, "127.0.0.1", 0, ssl=server_context(key))
        try:
            yield f"tls://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for side in sides:
                if side.transport is not None:
                    side.transport.abort()


@asynccontextmanager
async def wiretap(target: str) -> AsyncIterator[tuple[str, list[int]]]:
    """A way to a target, and the lengths of the TLS records that come back on it."""
    records: list[int] = []
    async with asyncio.TaskGroup() as group:

        async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            back, forth = await asyncio.open_connection("127.0.0.1", parse_address(target).port)
            group.create_task(_pass_on(reader, forth, []))
            group.create_task(_pass_on(back, writer, records))

        server = await asyncio.start_server(meet, "127.0.0.1", 0)
        try:
            yield f"tls://127.0.0.1:{server.sockets[0].getsockname()[1]}", records
        finally:
            server.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: list[int]) -> None:
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            header = await reader.readexactly(5)
            length = int.from_bytes(header[3:], "big")
            writer.write(header + await reader.readexactly(length))
            seen.append(length)
    writer.close()


async def raw_stream(hint: str, peer: PeerId, key: SigningKey) -> FrameStream:
    """A connection to a node, and nothing said on it yet."""
    transport = find_transport(hint, default_transports(key, NetConfig()))
    return FrameStream(await transport.dial(hint, peer))


async def raw_link(hint: str, peer: PeerId, key: SigningKey, hello: Hello = HELLO) -> FrameStream:
    """A connection on which both have said `Hello`; what follows is up to the test."""
    stream = await raw_stream(hint, peer, key)
    await send_proof(stream, key, hello)
    await read_hello(stream, hello)
    return stream
