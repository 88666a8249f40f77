from __future__ import annotations

import asyncio
import os
import socket

import pytest
from tests.machines import HELLO
from tests.net.live import LiveNode, link, named_key, ordered_keys
from tests.net.strangers import raw_link, raw_stream

from linnet.core.effects import Dial, HangUp, Probe, Send
from linnet.core.ids import PeerId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp, Probed, Received
from linnet.core.reasons import Reason
from linnet.net.config import NetConfig
from linnet.net.handshake import read_hello, send_proof
from linnet.peer.messages import CODEC, Bye, Ping
from linnet.trace.records import Kind, Record
from linnet.wire.frame import frame

SMALL, LARGE = ordered_keys(2)
ROUNDS = 1000 if os.environ.get("LINNET_SOAK") == "1" else 100


@pytest.mark.parametrize("scheme", ["tls", "wss", "pipe"])
async def test_two_that_dial_each_other_get_one_link(scheme: str) -> None:
    where = [f"{scheme}://127.0.0.1:0"]
    async with LiveNode(SMALL, where) as small, LiveNode(LARGE, where) as large:
        for number in range(ROUNDS):
            small.inputs.clear()
            large.inputs.clear()
            # Who is first changes from round to round.
            for node, other in ((small, large), (large, small))[:: 1 if number % 2 else -1]:
                node.dial(other)
                if number % 3 == 0:
                    await asyncio.sleep(0)
            await small.happens(LinkUp)
            await large.happens(LinkUp)
            small.act(Send(large.peer, Ping(number)))
            large.act(Send(small.peer, Ping(number)))
            await small.happens(Received)
            await large.happens(Received)
            ups = small.seen(LinkUp) + large.seen(LinkUp)
            assert len(ups) == 2
            assert ups[0].dialed != ups[1].dialed, "both ends see the same link"
            assert small.seen(LinkDown) == large.seen(LinkDown) == []
            small.act(HangUp(large.peer, Reason.NOT_NEEDED))
            await small.happens(LinkDown)
            await large.happens(LinkDown)
            assert small.seen(DialFailed) == large.seen(DialFailed) == []


async def test_the_link_of_the_smaller_key_wins() -> None:
    async with LiveNode(SMALL) as small, LiveNode(LARGE) as large:
        # Both are past the point where they could know of each other's dial.
        waiting = await raw_stream(small.hints[0], small.peer, LARGE)
        small.dial(large)
        await send_proof(waiting, LARGE, HELLO)
        assert (await small.happens(LinkUp)).dialed
        assert (await large.happens(LinkUp)).dialed is False
        waiting.connection.close()


async def test_the_larger_key_takes_the_link_if_the_dial_of_the_smaller_fails() -> None:
    async with LiveNode(SMALL) as small:
        nobody = LiveNode(LARGE)
        nobody.listeners[0].close()
        small.act(Dial(nobody.peer, nobody.hints, False))
        channel = await raw_link(small.hints[0], small.peer, LARGE)
        assert not (await small.happens(LinkUp)).dialed
        channel.connection.close()


async def test_a_dial_that_hangs_holds_the_other_only_for_a_while() -> None:
    config = NetConfig(hold_timeout=0.2, dial_timeout=30.0)
    silent = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
    hint = f"tls://127.0.0.1:{silent.sockets[0].getsockname()[1]}"
    async with LiveNode(SMALL, config=config) as small:
        small.act(Dial(PeerId(LARGE.public), (hint,), False))
        channel = await raw_link(small.hints[0], small.peer, LARGE)
        up = await small.happens(LinkUp)
        assert not up.dialed
        assert small.inputs == [up]
        channel.connection.close()
    silent.close()


async def test_dials_beyond_the_limit_wait_for_their_turn() -> None:
    config = NetConfig(max_dials=1, dial_timeout=0.3)
    nobody = PeerId(named_key("nobody").public)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hint = f"tls://127.0.0.1:{silent.getsockname()[1]}"
        async with LiveNode(SMALL, config=config) as node, LiveNode(LARGE) as peer:
            node.act(Dial(nobody, (hint,), False), Dial(peer.peer, peer.hints, False))
            up = await node.happens(LinkUp)
            assert node.inputs == [DialFailed(nobody, Reason.DIAL_TIMEOUT), up]


async def test_a_peer_that_dials_again_has_lost_its_link() -> None:
    async with LiveNode(SMALL) as node:
        first = await raw_link(node.hints[0], node.peer, LARGE)
        second = await raw_link(node.hints[0], node.peer, LARGE)
        second.write(frame(CODEC.encode(Ping(2))))
        await node.happens(Received)
        peer = PeerId(LARGE.public)
        assert node.inputs == [
            LinkUp(peer, HELLO, False, None),
            LinkDown(peer, Reason.DUPLICATE_LINK),
            LinkUp(peer, HELLO, False, None),
            Received(peer, Ping(2)),
        ]
        assert CODEC.decode(await first.read_frame(1000)) == Bye(Reason.DUPLICATE_LINK)
        first.connection.close()
        second.connection.close()


async def test_a_peer_that_dials_while_we_hold_our_own_link_to_it_has_lost_that() -> None:
    config = NetConfig(hold_timeout=0.2)
    async with LiveNode(SMALL, config=config) as small, LiveNode(LARGE) as large:
        await link(small, large)
        # Another process with the same key: the first one has crashed, and nobody told us.
        channel = await raw_link(small.hints[0], small.peer, LARGE)
        await small.until(lambda: len(small.seen(LinkUp)) == 2)
        assert small.inputs == [
            LinkUp(large.peer, HELLO, True, None),
            LinkDown(large.peer, Reason.DUPLICATE_LINK),
            LinkUp(large.peer, HELLO, False, None),
        ]
        channel.connection.close()


async def test_a_dial_that_is_withdrawn_changes_nothing() -> None:
    async with LiveNode(SMALL, config=NetConfig(hold_timeout=5.0)) as small, LiveNode(LARGE) as large:
        await link(small, large)
        crossing = await raw_stream(small.hints[0], small.peer, LARGE)
        await send_proof(crossing, LARGE, HELLO)
        crossing.connection.close()
        await crossing.connection.lost
        small.act(Send(large.peer, Ping(1)))
        await large.happens(Received)
        assert small.inputs == [LinkUp(large.peer, HELLO, True, None)]


async def test_dialling_a_peer_that_is_up_does_nothing() -> None:
    async with LiveNode(SMALL) as small, LiveNode(LARGE) as large:
        await link(small, large)
        small.dial(large)
        small.dial(large)
        small.act(Send(large.peer, Ping(1)))
        await large.happens(Received)
        assert len(small.seen(LinkUp)) == len(large.seen(LinkUp)) == 1


async def test_links_are_traced() -> None:
    async with LiveNode(SMALL) as small, LiveNode(LARGE) as large:
        await link(small, large)
        small.act(HangUp(large.peer, Reason.BLOCKED))
        assert (await small.happens(LinkDown)).reason is Reason.BLOCKED
        assert (await large.happens(LinkDown)).reason is Reason.BLOCKED
        for node, other in ((small, large), (large, small)):
            assert node.records == [
                Record(Kind.LINK_UP, peer=other.peer),
                Record(Kind.LINK_DOWN, peer=other.peer, reason=Reason.BLOCKED),
            ]


async def test_each_failure_of_a_dial_has_its_reason() -> None:
    peer = PeerId(LARGE.public)
    silent = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
    free = LiveNode(LARGE)
    free.listeners[0].close()
    cases: list[tuple[tuple[str, ...], Reason]] = [
        ((), Reason.NO_ADDRESS),
        (("carrier-pigeon://coop:1",), Reason.NO_ADDRESS),
        (("tls://no-such-host.invalid:1",), Reason.NO_ADDRESS),
        (free.hints, Reason.CONNECTION_REFUSED),
        ((f"tls://127.0.0.1:{silent.sockets[0].getsockname()[1]}",), Reason.DIAL_TIMEOUT),
        (("tls://255.255.255.255:1",), Reason.UNREACHABLE),
        # Of several, the one that got furthest.
        (("tls://no-such-host.invalid:1", *free.hints), Reason.CONNECTION_REFUSED),
    ]
    config = NetConfig(dial_timeout=0.5)
    async with LiveNode(SMALL, config=config) as node, LiveNode(named_key("asker")) as asker:
        await link(asker, node)
        for hints, reason in cases:
            node.inputs.clear()
            node.act(Dial(peer, hints, False), Probe(asker.peer, hints))
            assert await node.happens(DialFailed) == DialFailed(peer, reason)
            # What a peer learns of the addresses that it names is only that it is not there.
            assert await node.happens(Probed) == Probed(asker.peer, Reason.UNREACHABLE)
        notes = [
            (record.reason, (record.note or "").startswith("tried for itself"))
            for record in node.recorded(Kind.CONTROL)
        ]
        assert sorted(notes) == sorted(
            (reason, is_probe) for _, reason in cases for is_probe in (False, True)
        )
    silent.close()


async def test_addresses_are_tried_until_one_shows_the_key() -> None:
    silent = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
    dead = f"tls://127.0.0.1:{silent.sockets[0].getsockname()[1]}"
    config = NetConfig(dial_stagger=0.05)
    async with LiveNode(SMALL, config=config) as small, LiveNode(LARGE) as large:
        small.act(Dial(large.peer, (dead, *small.hints, "wss://127.0.0.1:1", *large.hints), False))
        await small.happens(LinkUp)
        assert small.seen(DialFailed) == []
    silent.close()


async def test_every_failed_probe_takes_the_same_time() -> None:
    """Else who asks could tell a closed port from a filtered one, and an address from none."""
    silent = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
    free = LiveNode(LARGE)
    free.listeners[0].close()
    filtered = (f"tls://127.0.0.1:{silent.sockets[0].getsockname()[1]}",)
    config = NetConfig(dial_timeout=0.5)
    async with silent, LiveNode(SMALL, config=config) as node, LiveNode(named_key("asker")) as asker:
        await link(asker, node)
        for hints in (free.hints, filtered):
            node.act(Probe(asker.peer, hints))
        await node.until(lambda: bool(node.seen(Probed)))
        reasons = [record.reason for record in node.recorded(Kind.CONTROL)]
        assert reasons == [Reason.CONNECTION_REFUSED, Reason.DIAL_TIMEOUT]


async def test_nothing_is_tried_for_a_peer_that_has_left() -> None:
    """A peer without a link has no address that it could be tried at, but had all of them tried."""
    met: list[object] = []
    there = await asyncio.start_server(lambda *ends: met.append(ends), "127.0.0.1", 0)
    async with there, LiveNode(SMALL, config=NetConfig(dial_timeout=0.2)) as node:
        node.act(Probe(PeerId(LARGE.public), (f"tls://127.0.0.1:{there.sockets[0].getsockname()[1]}",)))
        assert await node.happens(Probed) == Probed(PeerId(LARGE.public), Reason.UNREACHABLE)
        assert met == []


@pytest.mark.parametrize("scheme", ["tls", "wss", "pipe"])
async def test_a_probe_leaves_no_trace(scheme: str) -> None:
    where = [f"{scheme}://127.0.0.1:0"]
    config = NetConfig(dial_timeout=0.5)
    async with LiveNode(SMALL, where, config=config) as small, LiveNode(LARGE, where) as large:
        await link(small, large)
        small.act(Probe(large.peer, large.hints))
        assert await small.happens(Probed) == Probed(large.peer, None)
        small.act(Probe(large.peer, small.hints))
        await small.until(lambda: len(small.seen(Probed)) == 2)
        assert small.inputs[-1] == Probed(large.peer, Reason.UNREACHABLE)
        assert large.inputs == [LinkUp(small.peer, HELLO, False, None)]
        assert large.records == [Record(Kind.LINK_UP, peer=small.peer)]


async def test_a_tracker_tries_itself_as_it_tries_others() -> None:
    """It may be a node of the streams that it tracks, and has no link to itself."""
    async with LiveNode(SMALL, config=NetConfig(dial_timeout=0.5)) as small:
        small.act(Probe(small.peer, small.hints))
        assert await small.happens(Probed) == Probed(small.peer, None)
        free = LiveNode(LARGE)
        free.listeners[0].close()
        small.inputs.clear()
        small.act(Probe(small.peer, free.hints))
        assert await small.happens(Probed) == Probed(small.peer, Reason.UNREACHABLE)


async def test_a_refused_handshake_is_read_by_the_dialler() -> None:
    async with LiveNode(SMALL) as node:
        channel = await raw_stream(node.hints[0], node.peer, LARGE)
        await send_proof(channel, LARGE, HELLO)
        assert await read_hello(channel, HELLO) == HELLO
        channel.connection.close()
        assert (await node.happens(LinkDown)).reason is Reason.REMOTE_CLOSED
