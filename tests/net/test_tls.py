from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.net.live import named_key
from tests.net.strangers import foreign_context

from linnet.core.reasons import Reason
from linnet.net.failure import LinkFailure
from linnet.net.tls import NoDeviceKey, client_context, cut_short, server_context, server_key


def certificate_of(context: ssl.SSLContext) -> bytes:
    """What a server of this context shows, through a handshake in memory."""
    ends = [(ssl.MemoryBIO(), ssl.MemoryBIO())]
    ((to_server, to_client),) = ends
    client = client_context(ssl.TLSVersion.TLSv1_2).wrap_bio(to_client, to_server)
    server = context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(5):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    shown = client.getpeercert(True)
    assert shown is not None
    return shown


def test_a_server_shows_its_device_key() -> None:
    key = named_key("server")
    assert server_key(certificate_of(server_context(key))) == key.public


def test_the_secret_is_in_no_file() -> None:
    before = set(os.listdir("/tmp")), len(os.listdir("/proc/self/fd"))
    server_context(named_key("server"))
    assert (set(os.listdir("/tmp")) - before[0], len(os.listdir("/proc/self/fd"))) == (set(), before[1])


def test_without_memory_files_a_private_file_serves_and_goes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: os.PathLike[str]
) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr("tempfile.tempdir", os.fspath(tmp_path))
    key = named_key("server")
    assert server_key(certificate_of(server_context(key))) == key.public
    assert os.listdir(tmp_path) == []


def test_a_certificate_of_another_sort_is_no_device() -> None:
    shown = certificate_of(foreign_context(ec.generate_private_key(ec.SECP256R1())))
    with pytest.raises(NoDeviceKey):
        server_key(shown)


@pytest.mark.parametrize("shown", [None, b"", b"\x30\x03\x02\x01\x01", b"\xff" * 100])
def test_what_is_no_certificate_is_refused(shown: bytes | None) -> None:
    with pytest.raises(LinkFailure) as failure:
        server_key(shown)
    assert failure.value.reason is Reason.TLS_FAILED


def test_a_damaged_certificate_never_raises_anything_else() -> None:
    shown = certificate_of(server_context(named_key("server")))
    for position in range(len(shown)):
        damaged = shown[:position] + bytes([shown[position] ^ 0x5A]) + shown[position + 1 :]
        with suppress(LinkFailure):  # Damage to a name or a date is none of our business.
            server_key(damaged)


class Cancelling(asyncio.Protocol):
    """Cancels whoever waits for the handshake, in the moment in which it is over."""

    def __init__(self, cancel: Callable[[], object]) -> None:
        self._cancel = cancel

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._cancel()


async def test_a_handshake_that_is_cancelled_leaves_its_descriptor_to_others() -> None:
    ours, theirs = socket.socketpair()
    number = ours.fileno()
    loop = asyncio.get_running_loop()
    context = server_context(named_key("cut short"))

    async def handshake() -> None:
        try:
            await loop.connect_accepted_socket(lambda: Cancelling(task.cancel), ours, ssl=context)
        except BaseException as error:
            cut_short(ours, error)
            raise

    for each in (ours, theirs):
        each.setblocking(False)
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        task = tasks.create_task(handshake())
        reader, writer = await asyncio.open_connection(sock=theirs, ssl=client_context(), server_hostname="")
        assert await reader.read() == b""
        writer.close()
        with suppress(ssl.SSLError, ConnectionError):
            await writer.wait_closed()
    assert task.cancelled()
    one, other = socket.socketpair()
    with one, other:
        assert number in (one.fileno(), other.fileno())
        for each in (one, other):
            each.setblocking(False)
        await loop.sock_sendall(one, b"x")
        await loop.sock_sendall(other, b"y")
        assert (await loop.sock_recv(one, 1), await loop.sock_recv(other, 1)) == (b"y", b"x")


def test_a_connection_whose_handshake_failed_is_closed() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        cut_short(ours, OSError())
        assert ours.fileno() == -1
