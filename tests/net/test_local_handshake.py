"""Who is believed on a local network: only who proves both keys, to this one and on this connection."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from tests.machines import HELLO
from tests.net.live import named_key

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.edge.announcement import lan_hint, network_id
from linnet.net.address import Address, parse_address
from linnet.net.config import NetConfig
from linnet.net.failure import LinkFailure
from linnet.net.handshake import (
    CHALLENGE,
    Challenge,
    FrameStream,
    Introduction,
    LocalClient,
    Presented,
    check_local_client,
    introduce,
    read_client_hello,
    read_hello,
    read_message,
    send_hello,
)
from linnet.net.local_keys import LocalKeys, OwnKey
from linnet.net.tls_transport import TlsTransport, listen_anywhere
from linnet.net.transport import Incoming
from linnet.peer.messages import CODEC, Bye
from linnet.wire.codec import Codec
from linnet.wire.frame import frame

SERVER, CLIENT, OTHER = named_key("server"), named_key("client"), named_key("other")
OWN = named_key("the client's key on this network")
HOME = network_id([b"home"])
_INTRODUCTION: Codec[Introduction] = Codec(Introduction)
_PRESENTED: Codec[Presented] = Codec(Presented)


class Door:
    """A server on a local network, whose accepted connection a test holds by hand."""

    def __init__(self) -> None:
        self.keys = LocalKeys(SERVER)
        self.own: OwnKey = self.keys.enter(HOME, 7)
        self.listener = listen_anywhere(self.keys.context, self.keys.shown_key, NetConfig())

    async def dial(self) -> tuple[FrameStream, FrameStream]:
        """Both ends of a new connection: the client's and the server's."""
        hint = lan_hint(self.own.key.public, "127.0.0.1", self.listener.address.port)
        async with asyncio.TaskGroup() as group:
            ours = group.create_task(
                TlsTransport(CLIENT, NetConfig()).dial(hint, PeerId(self.own.key.public))
            )
            theirs = group.create_task(self._take())
        return FrameStream(ours.result()), theirs.result()

    async def _take(self) -> FrameStream:
        taken: asyncio.Future[Incoming] = asyncio.get_running_loop().create_future()
        self.listener.start(taken.set_result, taken.set_exception)
        incoming = await taken
        self.listener.stop()
        return FrameStream(await incoming.establish())


@asynccontextmanager
async def connection() -> AsyncIterator[tuple[Door, FrameStream, FrameStream]]:
    door = Door()
    client, server = await door.dial()
    try:
        yield door, client, server
    finally:
        client.connection.abort()
        server.connection.abort()
        door.listener.close()
        await asyncio.wait((client.connection.lost, server.connection.lost))


async def test_both_learn_who_the_other_is_and_may_be_linked() -> None:
    async with connection() as (door, client, server):
        assert server.connection.local_key == client.connection.remote_key == door.own.key.public
        assert server.connection.remote_key is client.connection.local_key is None
        found, told = await asyncio.gather(
            introduce(client, CLIENT, OWN), check_local_client(server, SERVER, door.own.key)
        )
        assert found == SERVER.public
        assert told == LocalClient(PeerId(CLIENT.public), OWN.public)
        send_hello(client, HELLO)
        assert await read_client_hello(server, HELLO) == HELLO
        send_hello(server, HELLO)
        assert await read_hello(client, HELLO) == HELLO


async def test_a_client_may_leave_it_at_that() -> None:
    async with connection() as (door, client, server):
        await asyncio.gather(introduce(client, CLIENT, OWN), check_local_client(server, SERVER, door.own.key))
        client.write(frame(CODEC.encode(Bye(Reason.DUPLICATE_LINK))))
        with pytest.raises(LinkFailure) as failure:
            await read_client_hello(server, HELLO)
        assert failure.value.reason is Reason.REMOTE_CLOSED


def said(
    lan: bytes, server: bytes, nonce: bytes, *, sign: bytes = CLIENT.seed, own: bytes = OWN.seed
) -> Introduction:
    """An introduction, signed with the keys of these seeds whatever it claims."""
    mine = secrets.token_bytes(32)
    known = server + lan + nonce + mine + CLIENT.public
    signer, lan_signer = type(CLIENT)(sign), type(CLIENT)(own)
    sig = signer.sign(b"linnet/lan/client/1" + known)
    lan_sig = lan_signer.sign(b"linnet/lan/client-lan/1" + known)
    return Introduction(PeerId(CLIENT.public), PeerId(lan), mine, sig, lan_sig)


def ours(door: bytes, nonce: bytes) -> Introduction:
    told = said(OWN.public, door, nonce)
    return Introduction(PeerId(SERVER.public), told.lan, told.nonce, told.sig, told.lan_sig)


@pytest.mark.parametrize(
    "forge",
    [
        lambda door, nonce: said(OWN.public, door, nonce, sign=OTHER.seed),
        lambda door, nonce: said(OWN.public, door, nonce, own=OTHER.seed),
        lambda door, nonce: said(OTHER.public, door, nonce),
        lambda door, nonce: said(OWN.public, OTHER.public, nonce),
        lambda door, nonce: said(OWN.public, door, bytes(32)),
        lambda door, nonce: said(door, door, nonce),
        ours,
    ],
    ids=["device", "lan", "another's lan key", "for another", "replayed", "our lan key", "our key"],
)
async def test_a_client_that_lies_is_refused_and_learns_nothing(
    forge: Callable[[bytes, bytes], Introduction],
) -> None:
    async with connection() as (door, client, server):

        async def lie() -> bytes:
            challenge = await read_message(client, CHALLENGE)
            told = forge(door.own.key.public, challenge.nonce)
            client.write(frame(_INTRODUCTION.encode(told)))
            return await client.read_frame(1024)

        results = await asyncio.gather(
            lie(), check_local_client(server, SERVER, door.own.key), return_exceptions=True
        )
        answer, failure = results
        assert isinstance(failure, LinkFailure)
        assert failure.reason is Reason.AUTH_FAILED
        assert answer == CODEC.encode(Bye(Reason.AUTH_FAILED))
        assert isinstance(answer, bytes)
        assert SERVER.public not in answer


@pytest.mark.parametrize("fault", ["signature", "another", "ours"])
async def test_a_server_that_lies_is_not_believed(fault: str) -> None:
    async with connection() as (door, client, server):

        async def lie() -> None:
            nonce = secrets.token_bytes(32)
            server.write(frame(CHALLENGE.encode(Challenge(nonce))))
            told = await read_message(server, _INTRODUCTION)
            known = door.own.key.public + told.lan + nonce + told.nonce + told.key
            key = {"signature": SERVER, "another": SERVER, "ours": CLIENT}[fault]
            tag = b"linnet/lan/client/1" if fault == "signature" else b"linnet/lan/server/1"
            shown = OTHER.public if fault == "another" else key.public
            server.write(frame(_PRESENTED.encode(Presented(PeerId(shown), key.sign(tag + known + shown)))))

        _, failure = await asyncio.gather(lie(), introduce(client, CLIENT, OWN), return_exceptions=True)
        assert isinstance(failure, LinkFailure)
        assert failure.reason is (Reason.WRONG_KEY if fault == "ours" else Reason.AUTH_FAILED)


async def test_a_server_that_refuses_says_why() -> None:
    async with connection() as (_, client, server):

        async def refusing() -> None:
            server.write(frame(CHALLENGE.encode(Challenge(bytes(32)))))
            server.write(frame(CODEC.encode(Bye(Reason.BLOCKED))))

        _, failure = await asyncio.gather(refusing(), introduce(client, CLIENT, OWN), return_exceptions=True)
        assert isinstance(failure, LinkFailure)
        assert failure.reason is Reason.BLOCKED


def test_hints_of_local_networks_are_addresses() -> None:
    key = bytes(range(32))
    for host in ("10.0.0.1", "fe80::1%eth0"):
        hint = lan_hint(key, host, 99)
        assert parse_address(hint) == Address("lan", host, 99, key)
        assert str(parse_address(hint)) == hint
    for wrong in ("lan://10.0.0.1:99", "lan://short@10.0.0.1:99", f"{lan_hint(key, '10.0.0.1', 9)}/path"):
        with pytest.raises(LinkFailure):
            parse_address(wrong)
