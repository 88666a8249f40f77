from __future__ import annotations

import asyncio
import os
import random

import pytest
from tests.machines import HELLO
from tests.net.live import LIMIT, HandHeld, LiveNode, link, ordered_keys
from tests.net.strangers import Speaker, raw_link

from linnet.core.effects import HangUp, Send
from linnet.core.hello import Hello
from linnet.core.ids import AuthorId, DeviceId, PeerId, TopicId
from linnet.core.inputs import Congested, Drained, LinkDown, LinkUp, Received
from linnet.core.limits import KIB
from linnet.core.reasons import Reason
from linnet.delivery.messages import Data
from linnet.event.event import Unverified
from linnet.net.address import parse_address
from linnet.net.config import NetConfig
from linnet.peer.messages import CODEC, PROTOCOLS, Bye, Ping, Unsupported
from linnet.trace.records import Kind, Record
from linnet.wire.frame import frame

SMALL, MIDDLE, LARGE = ordered_keys(3)
SCHEMES = pytest.mark.parametrize("scheme", ["tls", "wss", "pipe"])
SOAK = os.environ.get("LINNET_SOAK") == "1"


def bulk(number: int, size: int = 60_000) -> Data:
    """A message of about this size that travels in the data lane."""
    unit = Unverified(
        TopicId(bytes(32)), AuthorId(bytes(32)), DeviceId(bytes(8)), number, None, (bytes(size),), bytes(64)
    )
    return Data(unit, 1, 0, 0, None)


@SCHEMES
async def test_a_reader_that_stops_is_cut_and_others_lose_nothing(scheme: str) -> None:
    config = NetConfig(outbox_bytes=2 << 20, high_mark=512 << 10, low_mark=128 << 10)
    where = [f"{scheme}://127.0.0.1:0"]
    async with LiveNode(SMALL, where, config) as node, LiveNode(MIDDLE, where) as good:
        await link(good, node)
        stuck = await raw_link(node.hints[0], node.peer, LARGE)
        await node.happens(LinkUp, PeerId(LARGE.public))
        stuck.connection.pause_reading()
        count = 500
        for number in range(count):
            message = bulk(number)
            node.act(Send(PeerId(LARGE.public), message), Send(good.peer, message))
            await good.until(lambda number=number: len(good.inputs) > number - 4)  # type: ignore[misc]
        await good.until(lambda: len(good.inputs) == count + 1)
        assert good.messages(node.peer) == [bulk(number) for number in range(count)]
        slow = PeerId(LARGE.public)
        assert [event for event in node.inputs if getattr(event, "peer", None) == slow] == [
            LinkUp(slow, HELLO, False, None),
            Congested(slow),
            LinkDown(slow, Reason.SLOW_PEER),
        ]
        lost = node.recorded(Kind.DROPPED)[0]
        assert (lost.peer, lost.reason) == (slow, Reason.SLOW_PEER)
        assert lost.bytes is not None
        assert lost.bytes > config.outbox_bytes
        assert lost.events > 30
        later = node.recorded(Kind.DROPPED)[1:]
        assert {record.reason for record in later} == {Reason.UNREACHABLE}, "and what came after the cut"
        stuck.connection.abort()


async def test_a_message_that_waits_too_long_cuts_the_link() -> None:
    config = NetConfig(outbox_age=0.3, sweep_period=0.05)
    async with LiveNode(SMALL, config=config) as node:
        stuck = await raw_link(node.hints[0], node.peer, LARGE)
        await node.happens(LinkUp)
        stuck.connection.pause_reading()
        node.act(*(Send(PeerId(LARGE.public), bulk(number)) for number in range(200)))
        assert (await node.happens(LinkDown)).reason is Reason.SLOW_PEER
        assert "waits for" in (node.recorded(Kind.DROPPED)[0].note or "")
        stuck.connection.abort()


async def test_congestion_is_told_and_its_end() -> None:
    async with LiveNode(SMALL) as node, LiveNode(LARGE) as peer:
        await link(node, peer)
        count = 200
        node.act(*(Send(peer.peer, bulk(number)) for number in range(count)))
        await peer.until(lambda: len(peer.inputs) == count + 1)
        await node.happens(Drained)
        assert node.inputs[1:] == [Congested(peer.peer), Drained(peer.peer)]
        assert node.recorded(Kind.DROPPED) == []


@SCHEMES
async def test_hanging_up_sends_what_was_said_before(scheme: str) -> None:
    where = [f"{scheme}://127.0.0.1:0"]
    async with LiveNode(SMALL, where) as node, LiveNode(LARGE, where) as peer:
        await link(node, peer)
        sends = [Send(peer.peer, bulk(number)) for number in range(100)]
        node.act(*sends, HangUp(peer.peer, Reason.NOT_NEEDED), Send(peer.peer, Ping(1)))
        assert (await peer.happens(LinkDown)).reason is Reason.NOT_NEEDED
        assert peer.messages(node.peer) == [bulk(number) for number in range(100)]
        assert isinstance(peer.inputs[-1], LinkDown)
        assert node.inputs[-1] == LinkDown(peer.peer, Reason.NOT_NEEDED)
        dropped = node.recorded(Kind.DROPPED)
        assert dropped == [Record(Kind.DROPPED, peer=peer.peer, reason=Reason.UNREACHABLE, note="Ping")], (
            "what came after the hang-up"
        )


@SCHEMES
async def test_two_that_hang_up_at_once_do_not_wait_for_each_other(scheme: str) -> None:
    where, config = [f"{scheme}://127.0.0.1:0"], NetConfig(linger=3600)
    async with asyncio.timeout(LIMIT):
        async with LiveNode(SMALL, where, config) as node, LiveNode(LARGE, where, config) as peer:
            await link(node, peer)
            node.act(HangUp(peer.peer, Reason.SHUTDOWN))
            peer.act(HangUp(node.peer, Reason.SHUTDOWN))
            await node.happens(LinkDown)
            await peer.happens(LinkDown)


async def test_the_peers_last_word_is_the_reason() -> None:
    async with LiveNode(SMALL) as node:
        channel = await raw_link(node.hints[0], node.peer, LARGE)
        said = [frame(CODEC.encode(Ping(number))) for number in range(1000)]
        channel.write(b"".join(said) + frame(CODEC.encode(Bye(Reason.FLOODING))))
        channel.connection.close()
        assert (await node.happens(LinkDown)).reason is Reason.FLOODING
        assert node.messages(PeerId(LARGE.public)) == [Ping(number) for number in range(1000)]


async def test_a_connection_that_breaks_off_says_so_after_what_was_received() -> None:
    async with LiveNode(SMALL) as node:
        channel = await raw_link(node.hints[0], node.peer, LARGE)
        channel.write(b"".join(frame(CODEC.encode(Ping(number))) for number in range(1000)))
        channel.connection.close()
        assert (await node.happens(LinkDown)).reason is Reason.REMOTE_CLOSED
        assert len(node.messages(PeerId(LARGE.public))) == 1000


HOSTILE = {
    "a frame too long": (b"\x7f\xff\xff\xff", Reason.OVERSIZED_FRAME, Reason.OVERSIZED_FRAME),
    "an empty frame": (frame(b""), Reason.MALFORMED, Reason.PROTOCOL_ERROR),
    "no msgpack": (frame(b"\xc1"), Reason.MALFORMED, Reason.PROTOCOL_ERROR),
    "a field too few": (frame(b"\x91\x01"), Reason.MALFORMED, Reason.PROTOCOL_ERROR),
    "a negative number": (frame(b"\x92\x01\xff"), Reason.MALFORMED, Reason.PROTOCOL_ERROR),
    "another hello": (frame(b"\x95\x00\x01\x01\x80\x90"), Reason.UNSUPPORTED, Reason.PROTOCOL_ERROR),
}


@SCHEMES
@pytest.mark.parametrize("case", HOSTILE)
async def test_hostile_bytes_end_the_link_with_a_reason(case: str, scheme: str) -> None:
    data, rejected, reason = HOSTILE[case]
    async with LiveNode(SMALL, [f"{scheme}://127.0.0.1:0"]) as node:
        channel = await raw_link(node.hints[0], node.peer, LARGE)
        channel.write(data + frame(CODEC.encode(Ping(1))))
        assert CODEC.decode(await channel.read_frame(1000)) == Bye(reason)
        assert node.inputs[1:] == [LinkDown(PeerId(LARGE.public), reason)]
        assert [record.reason for record in node.recorded(Kind.REJECTED)] == [rejected]
        channel.connection.close()


async def test_an_unknown_message_is_answered_and_the_link_lives() -> None:
    async with LiveNode(SMALL) as node:
        channel = await raw_link(node.hints[0], node.peer, LARGE)
        channel.write(frame(b"\x92\xcc\xf0\x01") + frame(CODEC.encode(Ping(1))))
        assert CODEC.decode(await channel.read_frame(1000)) == Unsupported(0xF0)
        assert await node.happens(Received) == Received(PeerId(LARGE.public), Ping(1))
        assert [record.reason for record in node.recorded(Kind.REJECTED)] == [Reason.UNSUPPORTED]
        channel.connection.close()


async def test_a_flood_of_unknown_messages_ends_the_link_and_leaves_few_records() -> None:
    async with LiveNode(SMALL, config=NetConfig(unknown_messages=5)) as node:
        channel = await raw_link(node.hints[0], node.peer, LARGE)
        for number in range(1_000):
            channel.write(frame(b"\x92\xcc%c\x01" % (0xF0 + number % 16)))
        assert await node.happens(LinkDown) == LinkDown(PeerId(LARGE.public), Reason.FLOODING)
        assert len(node.recorded(Kind.REJECTED)) == 6
        channel.connection.close()


async def test_the_link_that_holds_most_of_unfinished_frames_makes_room_for_the_others() -> None:
    config = NetConfig(unfinished_bytes=300 * KIB)
    begun = frame(b"\x92\xcc\xf0" + bytes(280 * KIB))
    async with LiveNode(SMALL, config=config) as node:
        greedy = await raw_link(node.hints[0], node.peer, LARGE)
        modest = await raw_link(node.hints[0], node.peer, MIDDLE)
        greedy.write(begun[: 250 * KIB])
        modest.write(begun[: 40 * KIB])
        modest.write(begun[40 * KIB : 60 * KIB])
        assert await node.happens(LinkDown) == LinkDown(PeerId(LARGE.public), Reason.SLOW_PEER)
        for number in range(20):  # What the other link held counts no longer.
            modest.write(begun[60 * KIB :] if not number else begun)
        modest.write(frame(CODEC.encode(Ping(7))))
        await node.until(lambda: Received(PeerId(MIDDLE.public), Ping(7)) in node.inputs)
        greedy.connection.close()
        modest.connection.close()


async def test_a_flood_does_not_delay_others() -> None:
    config = NetConfig(frames_per_turn=10, inbox_bytes=2000)
    async with LiveNode(SMALL, config=config) as node:
        flood = await raw_link(node.hints[0], node.peer, LARGE)
        other = await raw_link(node.hints[0], node.peer, MIDDLE)
        flood.write(b"".join(frame(CODEC.encode(Ping(number))) for number in range(20_000)))
        other.write(frame(CODEC.encode(Ping(7))))
        await node.until(lambda: len(node.inputs) == 2 + 20_001)
        assert node.inputs.index(Received(PeerId(MIDDLE.public), Ping(7))) < 15_000
        assert node.messages(PeerId(LARGE.public)) == [Ping(number) for number in range(20_000)]
        flood.connection.close()
        other.connection.close()


async def test_nothing_is_sent_that_the_peer_would_not_read() -> None:
    small_frames = HandHeld(hello=Hello(1, 1, PROTOCOLS, max_frame=65_536))
    async with LiveNode(SMALL) as node, LiveNode(LARGE, machine=small_frames) as peer:
        await link(node, peer)
        # One is too long for this peer, the other for everyone.
        node.act(*(Send(peer.peer, bulk(1, size)) for size in (100_000, 2_000_000)), Send(peer.peer, Ping(1)))
        await peer.happens(Received)
        assert peer.messages(node.peer) == [Ping(1)]
        dropped = Record(Kind.DROPPED, peer=peer.peer, reason=Reason.TOO_LARGE, note="Data")
        assert node.recorded(Kind.DROPPED) == [dropped, dropped]


async def test_control_overtakes_data() -> None:
    async with LiveNode(SMALL) as node, LiveNode(LARGE) as peer:
        await link(node, peer)
        node.act(*(Send(peer.peer, bulk(number)) for number in range(200)), Send(peer.peer, Ping(1)))
        await peer.until(lambda: len(peer.inputs) == 202)
        assert peer.messages(node.peer).index(Ping(1)) < 190


@SCHEMES
async def test_random_frames_never_harm_the_node(scheme: str) -> None:
    luck = random.Random(4)
    async with LiveNode(SMALL, [f"{scheme}://127.0.0.1:0"]) as node:
        for _ in range(1000 if SOAK else 60):
            channel = await raw_link(node.hints[0], node.peer, LARGE)
            for _ in range(luck.randrange(1, 10)):
                payload = luck.randbytes(luck.randrange(0, 40))
                if luck.random() < 0.7:  # Near misses: an array that begins with a tag of ours.
                    payload = bytes([0x90 + luck.randrange(16), luck.randrange(45)]) + payload
                channel.write(frame(payload))
            channel.connection.close()
        async with LiveNode(MIDDLE, [f"{scheme}://127.0.0.1:0"]) as peer:
            await link(peer, node)
            peer.act(Send(node.peer, Ping(1)))
            await node.until(lambda: node.messages(peer.peer) == [Ping(1)])


async def test_random_bytes_on_a_socket_never_harm_the_node() -> None:
    luck = random.Random(5)
    loop = asyncio.get_running_loop()
    async with LiveNode(SMALL, ["tls://127.0.0.1:0", "wss://127.0.0.1:0"]) as node:
        for _ in range(1000 if SOAK else 60):
            port = parse_address(luck.choice(node.hints)).port
            data = luck.randbytes(luck.randrange(0, 600))
            if luck.random() < 0.5:  # What looks like the beginning of TLS.
                data = b"\x16\x03\x01" + len(data).to_bytes(2, "big") + b"\x01\x00" + data
            speaker = Speaker(data)
            await loop.create_connection(lambda speaker=speaker: speaker, "127.0.0.1", port)  # type: ignore[misc]
            speaker.transport.close()
            await speaker.closed.wait()
        async with LiveNode(LARGE) as peer:
            await link(peer, node)
        assert {record.reason for record in node.recorded(Kind.REJECTED)} == {Reason.TLS_FAILED}
