from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.machines import HELLO
from tests.net.live import TLS, HandHeld, LiveNode, link, named_key
from tests.net.strangers import Speaker, foreign_context, foreign_server, raw_stream, relay

from linnet.core.effects import Dial
from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import DialFailed, LinkUp
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.net.config import NetConfig
from linnet.net.failure import LinkFailure
from linnet.net.handshake import (
    Challenge,
    Client,
    FrameStream,
    Proof,
    check_client,
    prove,
    read_hello,
    send_hello,
    send_proof,
)
from linnet.net.pipe import PipeConnection
from linnet.net.tls import client_context
from linnet.peer.messages import CODEC, FIRST_CODEC, PROTOCOLS, Bye, Ping
from linnet.trace.records import Kind
from linnet.wire.codec import Codec
from linnet.wire.frame import frame

SCHEMES = pytest.mark.parametrize("scheme", ["tls", "wss"])
CHALLENGE: Codec[Challenge] = Codec(Challenge)
PROOF: Codec[Proof] = Codec(Proof)
ALICE, BOB, MALLORY = named_key("alice"), named_key("bob"), named_key("mallory")


@asynccontextmanager
async def nodes(scheme: str, *keys: SigningKey) -> AsyncIterator[list[LiveNode]]:
    made = [LiveNode(key, [f"{scheme}://127.0.0.1:0"]) for key in keys]
    async with asyncio.timeout(20):
        for node in made:
            await node.__aenter__()
        try:
            yield made
        finally:
            for node in made:
                await node.__aexit__(None, None, None)


@SCHEMES
async def test_a_server_with_another_key_is_refused(scheme: str) -> None:
    async with nodes(scheme, ALICE, MALLORY) as (alice, mallory):
        alice.act(Dial(PeerId(BOB.public), mallory.hints, False))
        assert await alice.happens(DialFailed) == DialFailed(PeerId(BOB.public), Reason.WRONG_KEY)
        assert alice.seen(LinkUp) == []
        assert mallory.inputs == []


async def test_a_server_with_a_key_of_another_sort_is_refused() -> None:
    context = foreign_context(ec.generate_private_key(ec.SECP256R1()))
    async with nodes("tls", ALICE) as (alice,), foreign_server(context) as hint:
        alice.act(Dial(PeerId(BOB.public), (hint,), False))
        assert (await alice.happens(DialFailed)).reason is Reason.WRONG_KEY


@SCHEMES
async def test_a_proof_for_one_server_is_worth_nothing_at_another(scheme: str) -> None:
    """A man in the middle whom Alice dials willingly passes Bob's question on to her."""
    async with nodes(scheme, BOB) as (bob,):
        towards_bob = await raw_stream(bob.hints[0], bob.peer, ALICE)
        challenge = CHALLENGE.decode(await towards_bob.read_frame(1000))
        # Alice, greeting Mallory, signs Bob's nonce: Mallory's key is under her signature.
        proof = prove(ALICE, PeerId(MALLORY.public), challenge.nonce)
        towards_bob.write(frame(PROOF.encode(proof)) + frame(FIRST_CODEC.encode(HELLO)))
        answer = CODEC.decode(await towards_bob.read_frame(1000))
        assert answer == Bye(Reason.AUTH_FAILED)
        assert (await bob.traced(Kind.REJECTED)).reason is Reason.AUTH_FAILED
        assert bob.inputs == []
        await towards_bob.connection.lost


async def test_a_relay_of_the_whole_handshake_fails() -> None:
    """Mallory, with a key of her own, takes TLS apart and passes every byte inside on to the real Bob."""
    async with nodes("tls", ALICE, BOB) as (alice, bob), relay(MALLORY, bob.hints[0]) as hint:
        # She pretends to be Bob.
        alice.act(Dial(bob.peer, (hint,), False))
        assert (await alice.happens(DialFailed)).reason is Reason.WRONG_KEY
        assert bob.recorded(Kind.REJECTED) == []
        # Alice dials Mallory willingly, and Mallory wants to be Alice at Bob's.
        alice.act(Dial(PeerId(MALLORY.public), (hint,), False))
        failed = await alice.happens(DialFailed, PeerId(MALLORY.public))
        assert failed.reason is Reason.AUTH_FAILED
        assert (await bob.traced(Kind.REJECTED)).reason is Reason.AUTH_FAILED
        assert bob.inputs == []
        assert alice.seen(LinkUp) == []


async def test_an_old_proof_cannot_be_used_again() -> None:
    async with nodes("tls", BOB) as (bob,):
        first = await raw_stream(bob.hints[0], bob.peer, ALICE)
        nonce = CHALLENGE.decode(await first.read_frame(1000)).nonce
        proof = frame(PROOF.encode(prove(ALICE, bob.peer, nonce))) + frame(FIRST_CODEC.encode(HELLO))
        first.write(proof)
        FIRST_CODEC.decode(await first.read_frame(1000))
        second = await raw_stream(bob.hints[0], bob.peer, ALICE)
        await second.read_frame(1000)
        second.write(proof)
        assert CODEC.decode(await second.read_frame(1000)) == Bye(Reason.AUTH_FAILED)
        first.connection.close()


async def test_nobody_gets_in_with_our_own_key() -> None:
    async with nodes("tls", BOB) as (bob,):
        bob.act(Dial(bob.peer, bob.hints, False))
        assert (await bob.happens(DialFailed)).reason is Reason.WRONG_KEY
        channel = await raw_stream(bob.hints[0], bob.peer, ALICE)
        nonce = CHALLENGE.decode(await channel.read_frame(1000)).nonce
        channel.write(frame(PROOF.encode(prove(BOB, bob.peer, nonce))))
        assert CODEC.decode(await channel.read_frame(1000)) == Bye(Reason.AUTH_FAILED)


async def test_a_dialler_of_tls_1_2_is_refused() -> None:
    async with nodes("tls", BOB) as (bob,):
        context = client_context(ssl.TLSVersion.TLSv1_2)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        port = int(bob.hints[0].rpartition(":")[2])
        with pytest.raises(OSError):  # noqa: PT011 - a bare reset, or an alert
            await asyncio.get_running_loop().create_connection(
                Speaker, "127.0.0.1", port, ssl=context, server_hostname=""
            )
        rejected = await bob.traced(Kind.REJECTED)
        assert rejected.reason is Reason.TLS_FAILED
        assert bob.inputs == []


async def test_no_message_is_handled_before_the_proof() -> None:
    async with nodes("tls", BOB) as (bob,):
        channel = await raw_stream(bob.hints[0], bob.peer, ALICE)
        await channel.read_frame(1000)
        channel.write(frame(CODEC.encode(Ping(1))))
        assert CODEC.decode(await channel.read_frame(1000)) == Bye(Reason.PROTOCOL_ERROR)
        assert bob.inputs == []
        assert (await bob.traced(Kind.REJECTED)).reason is Reason.PROTOCOL_ERROR


async def test_no_message_is_handled_before_hello() -> None:
    async with nodes("tls", BOB) as (bob,):
        channel = await raw_stream(bob.hints[0], bob.peer, ALICE)
        nonce = CHALLENGE.decode(await channel.read_frame(1000)).nonce
        channel.write(frame(PROOF.encode(prove(ALICE, bob.peer, nonce))) + frame(CODEC.encode(Ping(1))))
        assert CODEC.decode(await channel.read_frame(1000)) == Bye(Reason.PROTOCOL_ERROR)
        assert bob.inputs == []


@SCHEMES
async def test_nodes_without_a_common_version_part(scheme: str) -> None:
    where = [f"{scheme}://127.0.0.1:0"]
    newer = HandHeld(hello=Hello(2, 3, PROTOCOLS))
    async with LiveNode(ALICE, where) as alice, LiveNode(BOB, where, machine=newer) as bob:
        alice.dial(bob)
        bob.dial(alice)
        assert (await alice.happens(DialFailed)).reason is Reason.VERSION_MISMATCH
        assert (await bob.happens(DialFailed)).reason is Reason.VERSION_MISMATCH
        assert alice.seen(LinkUp) == bob.seen(LinkUp) == []


async def test_ranges_of_versions_that_overlap_are_enough() -> None:
    wider = HandHeld(hello=Hello(1, 3, PROTOCOLS))
    async with LiveNode(ALICE, TLS) as alice, LiveNode(BOB, TLS, machine=wider) as bob:
        await link(alice, bob)


async def test_a_stranger_that_says_nothing_is_sent_away() -> None:
    async with LiveNode(BOB, TLS, NetConfig(handshake_timeout=0.2)) as bob:
        channel = await raw_stream(bob.hints[0], bob.peer, ALICE)
        await channel.read_frame(1000)
        async with asyncio.timeout(5):
            await channel.connection.lost
        assert (await bob.traced(Kind.REJECTED)).reason is Reason.TIMEOUT


async def test_beyond_the_limit_the_stranger_that_was_there_first_is_sent_away() -> None:
    async with LiveNode(BOB, TLS, NetConfig(max_handshakes=2)) as bob:
        channels = [await raw_stream(bob.hints[0], bob.peer, ALICE) for _ in range(3)]
        assert (await bob.traced(Kind.REJECTED)).reason is Reason.TOO_MANY_LINKS
        async with asyncio.timeout(5):
            await channels[0].connection.lost
        assert channels[1].connection.is_open
        assert channels[2].connection.is_open
        async with LiveNode(ALICE, TLS) as alice:
            await link(alice, bob)
        for channel in channels[1:]:
            channel.connection.close()


def unproved(*keys: str) -> tuple[FrameStream, FrameStream]:
    """Both ends of a pipe between Alice and Bob that proves these keys only."""
    near, far = PipeConnection.make_pair(PeerId(ALICE.public), PeerId(BOB.public))
    if "client" not in keys:
        near.local_key = far.remote_key = None
    if "server" not in keys:
        near.remote_key = far.local_key = None
    return FrameStream(near), FrameStream(far)


async def test_where_both_keys_are_proved_only_hello_is_said() -> None:
    client, server = unproved("client", "server")
    await send_proof(client, ALICE, HELLO)
    assert client.connection.unsent == len(frame(FIRST_CODEC.encode(HELLO)))
    assert await check_client(server, BOB, HELLO) == Client(PeerId(ALICE.public), HELLO)
    assert server.connection.unsent == 0, "no challenge"
    send_hello(server, HELLO)
    assert await read_hello(client, HELLO) == HELLO


async def test_where_the_server_alone_is_proved_the_client_proves_its_key() -> None:
    client, server = unproved("server")
    checked, _ = await asyncio.gather(check_client(server, BOB, HELLO), send_proof(client, ALICE, HELLO))
    assert checked == Client(PeerId(ALICE.public), HELLO)


@pytest.mark.parametrize("keys", [(), ("client",)])
async def test_whoever_is_not_proved_by_the_transport_is_told_nothing(keys: tuple[str, ...]) -> None:
    """Without a channel binding, a signature would be good for somebody in the middle too."""
    client, server = unproved(*keys)
    with pytest.raises(LinkFailure) as failed:
        await send_proof(client, ALICE, HELLO)
    assert failed.value.reason is Reason.WRONG_KEY
    assert client.connection.unsent == 0
    with pytest.raises(LinkFailure) as failed:
        await check_client(server, BOB, HELLO)
    assert failed.value.reason is Reason.AUTH_FAILED
    assert CODEC.decode(await client.read_frame(100)) == Bye(Reason.AUTH_FAILED)


async def test_a_pipe_of_our_own_is_refused() -> None:
    near, far = PipeConnection.make_pair(PeerId(BOB.public), PeerId(BOB.public))
    client, server = FrameStream(near), FrameStream(far)
    await send_proof(client, BOB, HELLO)
    with pytest.raises(LinkFailure, match="our own key"):
        await check_client(server, BOB, HELLO)
