"""Reaching a key: which address wins, who is closed, and which failure is told."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.net.live import LIMIT, named_key
from tests.net.strangers import Speaker, foreign_context, foreign_server

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.net.address import parse_address
from linnet.net.config import NetConfig
from linnet.net.dialer import Dialer
from linnet.net.failure import LinkFailure
from linnet.net.pipe import PipeConnection
from linnet.net.tls import server_context
from linnet.net.tls_transport import TlsTransport, open_socket
from linnet.net.transport import Connection, TransportListener

BOB, MALLORY = named_key("bob"), named_key("mallory")
BOBS = PeerId(BOB.public)


class House:
    """A server of one key on a port of its own; counts who came and who stayed."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self._context = context
        self.guests: list[Speaker] = []
        self.came = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._guest, "127.0.0.1", 0, ssl=self._context)
        try:
            yield f"tls://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for guest in self.guests:
                if hasattr(guest, "transport"):
                    guest.transport.abort()

    def _guest(self) -> Speaker:
        self.came += 1
        self.guests.append(Speaker())
        return self.guests[-1]


def house(key: SigningKey) -> House:
    return House(server_context(key))


@asynccontextmanager
async def deaf() -> AsyncIterator[str]:
    """An address that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"tls://127.0.0.1:{listening.getsockname()[1]}"


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return f"tls://127.0.0.1:{listening.getsockname()[1]}"


async def reached(*hints: str, config: NetConfig | None = None) -> Connection:
    async with asyncio.timeout(LIMIT):
        config, time = config or NetConfig(), asyncio.get_running_loop().time
        return await Dialer([TlsTransport(named_key("ann"), config)], config, time).reach(BOBS, hints)


async def failure(*hints: str, config: NetConfig | None = None) -> Reason:
    with pytest.raises(LinkFailure) as failed:
        await reached(*hints, config=config)
    return failed.value.reason


async def test_the_first_address_wins_and_the_second_is_not_even_tried() -> None:
    first, second = house(BOB), house(BOB)
    async with first.open() as near, second.open() as far:
        connection = await reached(near, far)
        assert (first.came, second.came) == (1, 0)
        connection.abort()


async def test_an_address_named_twice_is_tried_once() -> None:
    wrong = house(MALLORY)
    async with wrong.open() as hint:
        assert await failure(hint, hint, hint) is Reason.WRONG_KEY
        assert wrong.came == 1


async def test_a_deaf_address_holds_up_the_next_one_for_a_moment_only() -> None:
    right = house(BOB)
    async with deaf() as silent, right.open() as hint:
        connection = await reached(silent, hint, config=NetConfig(dial_timeout=60.0, dial_stagger=0.01))
        assert right.came == 1
        connection.abort()


async def test_an_address_that_fails_makes_way_at_once() -> None:
    right = house(BOB)
    async with right.open() as hint:
        connection = await reached(free_address(), hint, config=NetConfig(dial_stagger=3600.0))
        assert right.came == 1
        connection.abort()


async def test_who_shows_another_key_is_hung_up_on() -> None:
    wrong, right = house(MALLORY), house(BOB)
    async with wrong.open() as bad, right.open() as good:
        connection = await reached(bad, good)
        async with asyncio.timeout(LIMIT):
            await wrong.guests[0].closed.wait()
        assert bytes(wrong.guests[0].heard) == b"", "and is told nothing about us"
        assert not right.guests[0].closed.is_set()
        connection.abort()


async def test_each_way_to_fail_has_its_reason() -> None:
    quick = NetConfig(dial_timeout=0.2)
    foreign = foreign_context(ec.generate_private_key(ec.SECP256R1()))
    async with foreign_server(None, b"220 mail.example.org\r\n") as mail:
        assert await failure(mail) is Reason.TLS_FAILED
    async with foreign_server(foreign) as web:
        assert await failure(web) is Reason.WRONG_KEY
    async with deaf() as silent:
        assert await failure(silent, config=quick) is Reason.DIAL_TIMEOUT
    assert await failure(free_address()) is Reason.CONNECTION_REFUSED
    assert await failure() is Reason.NO_ADDRESS
    assert await failure("carrier pigeon") is Reason.NO_ADDRESS


async def test_a_server_of_tls_1_2_is_not_spoken_to_though_it_shows_the_right_key() -> None:
    context = server_context(BOB)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    old = House(context)
    async with old.open() as outdated:
        assert await failure(outdated) is Reason.TLS_FAILED
    assert all(not guest.heard for guest in old.guests)


async def test_of_several_failures_the_one_that_got_furthest_is_told() -> None:
    wrong = house(MALLORY)
    async with wrong.open() as other_key, foreign_server(None, b"220 hello\r\n") as mail:
        closed = free_address()
        assert await failure("nonsense", closed) is Reason.CONNECTION_REFUSED
        assert await failure(closed, mail, "nonsense") is Reason.TLS_FAILED
        assert await failure(other_key, closed, mail) is Reason.WRONG_KEY


async def test_a_dial_that_is_given_up_leaves_no_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        hint = f"tls://127.0.0.1:{listening.getsockname()[1]}"
        async with asyncio.TaskGroup() as group:
            dialling = group.create_task(reached(hint))
            loop = asyncio.get_running_loop()
            listening.setblocking(False)
            guest, _ = await loop.sock_accept(listening)
            dialling.cancel()
        with guest:
            async with asyncio.timeout(LIMIT):
                while await loop.sock_recv(guest, 4096):
                    pass


async def test_an_opened_socket_does_not_wait_to_fill_packets() -> None:
    async with deaf() as hint:
        with await open_socket(parse_address(hint)) as opened:
            assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert opened.getblocking() is False


async def test_who_shows_the_key_and_speaks_no_websocket_makes_way_for_the_next() -> None:
    said = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
    async with foreign_server(server_context(BOB), said) as hint:
        deceived = hint.replace("tls://", "wss://")
        assert await failure(deceived) is Reason.PROTOCOL_ERROR
        right = house(BOB)
        async with right.open() as good:
            connection = await reached(deceived, good)
            assert right.came == 1
            connection.abort()


class Staged:
    """A transport with two places: one answers at once, the other is slow to give up."""

    schemes = ("staged",)

    def __init__(self) -> None:
        self.near, self.far = PipeConnection.make_pair(PeerId(named_key("ann").public), BOBS)
        self.is_leaving = asyncio.Event()
        self.may_leave = asyncio.Event()

    async def resolve(self, hint: str) -> list[str]:
        return [hint]

    async def dial(self, hint: str, expected: PeerId) -> Connection:
        if hint == "staged://quick":
            return self.near
        try:
            await asyncio.Event().wait()
            raise AssertionError
        finally:
            self.is_leaving.set()
            await self.may_leave.wait()

    def listen(self, hint: str) -> TransportListener:
        raise NotImplementedError


async def test_a_dial_that_is_given_up_after_it_was_won_leaves_no_connection() -> None:
    staged, config = Staged(), NetConfig(dial_stagger=0.0)
    dialer = Dialer([staged], config, asyncio.get_running_loop().time)
    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
        dialling = group.create_task(dialer.reach(BOBS, ["staged://slow", "staged://quick"]))
        await staged.is_leaving.wait()
        dialling.cancel()
        staged.may_leave.set()
    assert dialling.cancelled()
    assert not staged.near.is_open
    async with asyncio.timeout(LIMIT):
        await staged.far.lost
