"""Every transport does what `linnet.net.transport` says; one body for all of them."""

from __future__ import annotations

import asyncio
import os

import pytest
from tests.net.live import LIMIT, LiveNode, named_key
from tests.net.strangers import raw_stream
from tests.net.transport_contract import (
    CLIENT,
    OTHER,
    SERVERS,
    WIRES,
    Reader,
    Server,
    connected,
    fails,
    fill,
    turns,
)

from linnet.core.effects import Dial, Send
from linnet.core.ids import PeerId
from linnet.core.inputs import DialFailed, LinkUp, Received
from linnet.core.reasons import Reason
from linnet.net.failure import LinkFailure
from linnet.net.transport import Connection, Lane
from linnet.peer.messages import Ping
from linnet.trace.records import Kind
from linnet.wire.frame import frame

COUNT = 1000 if os.environ.get("LINNET_SOAK") == "1" else 100
EVERY = pytest.mark.parametrize("wire", WIRES)
SCHEMES = pytest.mark.parametrize("scheme", ["tls", "wss", "pipe"])


def numbered(count: int, lane: str = "") -> list[bytes]:
    return [f"{lane}{number}".encode() for number in range(count)]


@EVERY
async def test_keys_are_proved_or_left_to_the_handshake(wire: str) -> None:
    """The client always knows the server; what one end has proved is what the other end knows."""
    async with connected(wire) as (near, far):
        assert near.remote_key == SERVERS == far.local_key
        assert near.local_key == far.remote_key
        assert near.local_key in (None, CLIENT.public)
        assert near.is_ordered == far.is_ordered == (wire != "unordered pipe")


@EVERY
async def test_control_frames_arrive_in_order_both_ways(wire: str) -> None:
    async with connected(wire) as (near, far):
        readers = Reader(near), Reader(far)
        for number in range(500):
            near.write(frame(b"there %d" % number))
            far.write(frame(b"back %d" % number))
            if number % 50 == 0:
                await asyncio.sleep(0)
        for reader, word in zip(readers, (b"back", b"there"), strict=True):
            await reader.until_frames(500)
            assert reader.frames == [b"%s %d" % (word, number) for number in range(500)]


@EVERY
async def test_data_has_the_order_that_is_stated(wire: str) -> None:
    async with connected(wire) as (near, far):
        reader = Reader(far)
        control, data = numbered(20, "control "), numbered(200, "data ")
        for number in range(20):
            near.write(frame(control[number]))
            near.write(b"".join(map(frame, data[10 * number : 10 * number + 10])), Lane.DATA)
        near.write(frame(b"last"), Lane.LAST)
        await reader.until_frames(221)
        assert reader.frames[-1] == b"last"
        assert [each for each in reader.frames if each.startswith(b"control")] == control
        came = [each for each in reader.frames if each.startswith(b"data")]
        assert sorted(came) == sorted(data), "each once"
        assert (came == data) == near.is_ordered


@EVERY
async def test_what_comes_before_there_is_a_consumer_is_kept(wire: str) -> None:
    async with connected(wire) as (near, far):
        near.write(frame(b"early"))
        await turns()
        near.write(frame(b"later"))
        await turns()
        first = Reader(far)
        await first.until_frames(2)
        second = Reader(far)
        near.write(frame(b"for the second"))
        await second.until_frames(1)
        assert (first.frames, second.frames) == ([b"early", b"later"], [b"for the second"])


@EVERY
async def test_a_reader_that_stops_holds_up_the_writer_and_nothing_is_lost(wire: str) -> None:
    async with connected(wire) as (near, far):
        writer, reader = Reader(near), Reader(far, reads=False)
        written = await fill(near)
        assert near.is_paused
        assert near.unsent > 0
        assert reader.frames == []
        before = writer.writable_count
        far.resume_reading()
        await reader.until_frames(written)
        await writer.until(lambda: writer.writable_count == before + 1)
        assert not near.is_paused
        assert [int.from_bytes(each[:4], "big") for each in reader.frames] == list(range(written))


@EVERY
async def test_a_slow_reader_gets_everything(wire: str) -> None:
    """One that stops after every few frames, and a writer that heeds it."""
    async with connected(wire) as (near, far):
        writer, reader = Reader(near), Reader(far)
        count = 200
        for number in range(count):
            await writer.until(lambda: not near.is_paused)
            near.write(frame(number.to_bytes(4, "big") + bytes(16_000)))
            if number % 20 == 0:
                far.pause_reading()
                await turns(3)
                far.resume_reading()
        await reader.until_frames(count)
        assert [int.from_bytes(each[:4], "big") for each in reader.frames] == list(range(count))


@EVERY
async def test_closing_brings_what_was_written_and_then_the_end(wire: str) -> None:
    async with connected(wire) as (near, far):
        ours, theirs = Reader(near), Reader(far, reads=False)
        written = await fill(near)
        near.write(frame(b"bye"), Lane.LAST)
        near.close(Reason.FLOODING)
        near.close(Reason.BLOCKED)
        assert not near.is_open
        near.write(frame(b"too late"))
        await turns()
        far.resume_reading()
        assert await theirs.until_lost() is Reason.REMOTE_CLOSED
        numbers = [int.from_bytes(each[:4], "big") for each in theirs.frames[:-1]]
        assert (numbers, theirs.frames[-1]) == (list(range(written)), b"bye")
        assert await ours.until_lost() is Reason.FLOODING, "our own reason, the first one"
        await turns()
        assert (ours.ends, theirs.ends) == ([Reason.FLOODING], [Reason.REMOTE_CLOSED]), "told once"


@EVERY
async def test_whoever_takes_over_what_is_gone_is_told_at_once(wire: str) -> None:
    async with connected(wire) as (near, far):
        first = Reader(far)
        near.close()
        await first.until_lost()
        second = Reader(far)
        assert second.ends == [Reason.REMOTE_CLOSED]


@EVERY
@pytest.mark.parametrize("before", ["open", "closed", "aborted", "gone", "left"])
async def test_aborting_ends_it_at_once_and_does_no_harm_again(wire: str, before: str) -> None:
    async with connected(wire) as (near, far):
        ours, theirs = Reader(near), Reader(far)
        near.write(frame(b"hello"))
        await theirs.until_frames(1)
        if before == "closed":
            near.close(Reason.FLOODING)
        elif before == "aborted":
            near.abort()
        elif before == "gone":
            near.abort()
            await ours.until_lost()
        elif before == "left":
            far.close()
            await ours.until_lost()
        near.abort()
        near.abort()
        near.close()
        near.write(frame(b"to nobody"))
        reason = await ours.until_lost()
        await theirs.until_lost()
        near.abort()
        near.close()
        near.pause_reading()
        near.resume_reading()
        await turns()
        expected = {"closed": Reason.FLOODING, "left": Reason.REMOTE_CLOSED}.get(before, Reason.NOT_NEEDED)
        assert (reason, ours.ends) == (expected, [expected])
        assert theirs.frames == [b"hello"]


@EVERY
async def test_a_peer_that_neither_reads_nor_leaves_holds_nobody(wire: str) -> None:
    """Half open: closing waits for it, aborting does not."""
    async with connected(wire) as (near, far):
        ours, theirs = Reader(near), Reader(far, reads=False)
        await fill(near)
        near.close(Reason.SLOW_PEER)
        await turns(50)
        assert ours.ends == [], "what was written has not gone"
        near.abort()
        assert await ours.until_lost() is Reason.SLOW_PEER
        assert theirs.frames == []


@EVERY
async def test_another_key_than_the_one_that_was_dialled_is_refused(wire: str) -> None:
    server = Server(wire)
    async with asyncio.TaskGroup() as group:
        dialling = group.create_task(fails(server.dial(PeerId(OTHER.public))))
        accepting = group.create_task(_accept_leaver(server))
        failure = await dialling
        accepting.cancel()
    assert isinstance(failure, LinkFailure)
    assert failure.reason is Reason.WRONG_KEY
    server.listener.close()


async def _accept_leaver(server: Server) -> None:
    """A server that is dialled by mistake: it hears nothing, if it hears of it at all."""
    incoming = await server.strangers.get()
    connection = await fails(incoming.establish())
    if not isinstance(connection, Exception):
        reader = Reader(connection)  # type: ignore[arg-type] # a connection, since it is no error
        await reader.until_lost()
        assert reader.raw == b""


@EVERY
async def test_nobody_there_and_nobody_home_have_their_reasons(wire: str) -> None:
    server = Server(wire)
    async with asyncio.TaskGroup() as group:
        dialling = group.create_task(fails(server.dial()))
        incoming = await asyncio.wait_for(server.strangers.get(), LIMIT)
        incoming.refuse()
        incoming.refuse()
    refused = dialling.result()
    assert isinstance(refused, LinkFailure)
    assert refused.reason in (Reason.TLS_FAILED, Reason.CONNECTION_REFUSED)
    server.listener.close()
    gone = await fails(server.dial())
    assert isinstance(gone, LinkFailure)
    assert gone.reason is Reason.CONNECTION_REFUSED


@EVERY
async def test_an_address_is_taken_once_and_given_back(wire: str) -> None:
    server = Server(wire)
    transport = server.make(OTHER)
    with pytest.raises(LinkFailure) as failed:
        transport.listen(server.hint)
    assert failed.value.reason is Reason.NO_ADDRESS
    server.listener.close()
    again = transport.listen(server.hint)
    assert again.hint == server.hint
    again.close()


@EVERY
async def test_a_listener_that_stops_hands_over_nobody(wire: str) -> None:
    server = Server(wire)
    server.listener.stop()
    async with asyncio.TaskGroup() as group:
        dialling = group.create_task(fails(server.dial()))
        await turns(50)
        assert server.strangers.empty()
        server.listener.start(server.strangers.put_nowait, server.failures.append)
        far = await asyncio.wait_for(server.accept(), LIMIT)
    near = dialling.result()
    assert not isinstance(near, Exception)
    server.listener.close()
    ends: tuple[Connection, Connection] = (near, far)  # type: ignore[assignment]
    for end in ends:
        end.abort()
    await asyncio.wait([end.lost for end in ends], timeout=LIMIT)


@EVERY
async def test_a_dial_that_is_given_up_leaves_nothing_behind(wire: str) -> None:
    server = Server(wire)
    async with asyncio.TaskGroup() as group:
        dialling = group.create_task(server.dial())
        incoming = await asyncio.wait_for(server.strangers.get(), LIMIT)
        dialling.cancel()
        found = await fails(incoming.establish())
        if isinstance(found, Exception):
            assert isinstance(found, LinkFailure)
        else:
            await Reader(found).until_lost()  # type: ignore[arg-type] # a connection, since it is no error
    server.listener.close()


@EVERY
async def test_a_dial_that_is_given_up_at_the_last_moment_leaves_nothing_behind(wire: str) -> None:
    """The server has taken it already, and the client may or may not know."""
    server = Server(wire)
    async with asyncio.TaskGroup() as group:
        dialling = group.create_task(server.dial())
        async with asyncio.timeout(LIMIT):
            far = Reader(await server.accept())
        dialling.cancel()
        await asyncio.wait([dialling])
    if not dialling.cancelled():
        dialling.result().abort()
    await far.until_lost()
    server.listener.close()


@EVERY
async def test_many_connections_do_not_mix(wire: str) -> None:
    server = Server(wire)
    pairs: list[tuple[Reader, Reader]] = []
    for start in range(0, COUNT, 50):
        made = await asyncio.gather(*(server.connect() for _ in range(min(50, COUNT - start))))
        pairs += [(Reader(near), Reader(far)) for near, far in made]
    for number, (near, _) in enumerate(pairs):
        near.connection.write(frame(number.to_bytes(4, "big")))
    for _, far in pairs:
        await far.until_frames(1)
        far.connection.write(frame(far.frames[0]))
    for number, (near, _) in enumerate(pairs):
        await near.until_frames(1)
        assert near.frames == [number.to_bytes(4, "big")], "what its own other end has heard"
    assert server.failures == []
    server.listener.close()
    for ends in pairs:
        for end in ends:
            end.connection.abort()
    for ends in pairs:
        for end in ends:
            await end.until_lost()


ALICE, BOB = named_key("alice"), named_key("bob")
GARBAGE = {
    "long": (b"\xff" * 64, Reason.OVERSIZED_FRAME),
    "noise": (frame(b"ab"), Reason.PROTOCOL_ERROR),
    "empty": (frame(b""), Reason.PROTOCOL_ERROR),
    "http": (b"GET / HTTP/1.1\r\n\r\n", Reason.OVERSIZED_FRAME),
}


@SCHEMES
@pytest.mark.parametrize("garbage", GARBAGE)
async def test_garbage_in_place_of_a_handshake_ends_in_a_reason(scheme: str, garbage: str) -> None:
    data, reason = GARBAGE[garbage]
    where = [f"{scheme}://127.0.0.1:0"]
    async with LiveNode(BOB, where) as bob, LiveNode(ALICE, where) as alice:
        stream = await raw_stream(bob.hints[0], bob.peer, CLIENT)
        stream.write(data)
        async with asyncio.timeout(LIMIT):
            await stream.connection.lost
        assert (await bob.traced(Kind.REJECTED)).reason is reason
        assert bob.inputs == []
        alice.dial(bob)
        await bob.happens(LinkUp, alice.peer)


@SCHEMES
async def test_a_node_says_hello_to_nobody_but_whom_it_dialled(scheme: str) -> None:
    where = [f"{scheme}://127.0.0.1:0"]
    async with LiveNode(BOB, where) as bob, LiveNode(ALICE, where) as alice:
        alice.act(Dial(PeerId(OTHER.public), bob.hints, False))
        assert await alice.happens(DialFailed) == DialFailed(PeerId(OTHER.public), Reason.WRONG_KEY)
        alice.dial(bob)
        await alice.happens(LinkUp, bob.peer)
        alice.act(Send(bob.peer, Ping(1)))
        assert await bob.happens(Received) == Received(alice.peer, Ping(1))
        assert bob.seen(LinkUp) == [LinkUp(alice.peer, alice.machine.hello, False, None)]
