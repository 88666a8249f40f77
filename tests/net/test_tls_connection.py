"""A TLS connection and its frames over a transport that only remembers: no socket, no TLS."""

from __future__ import annotations

import asyncio
import ssl

import pytest

from linnet.core.reasons import Reason
from linnet.net.address import parse_address
from linnet.net.failure import LinkFailure
from linnet.net.handshake import FrameStream
from linnet.net.tls_connection import TlsConnection
from linnet.net.websocket import WebSocket
from linnet.wire.frame import frame


class Paper(asyncio.Transport):
    """A transport on which everything is written down and nothing happens."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.reads = True
        self.high: int | None = None
        self.end = ""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.high = high

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self.written))

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return self.end != ""

    def close(self) -> None:
        """As Python 3.11.2 has it: a second time takes all use from a TLS transport."""
        self.end = "useless" if self.end else "closed"

    def abort(self) -> None:
        if self.end == "useless":
            raise AttributeError("'NoneType' object has no attribute '_abort'")
        self.end = "aborted"


class Pupil:
    """A consumer that remembers."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def data_received(self, data: bytes) -> None:
        self.heard.append(data)

    def writable(self) -> None:
        self.heard.append("writable")

    def connection_lost(self, reason: Reason) -> None:
        self.heard.append(reason)


def opened(websocket: WebSocket | None = None) -> tuple[TlsConnection, Paper]:
    connection, paper = TlsConnection(websocket, 1000), Paper()
    connection.connection_made(paper)
    return connection, paper


def dialler() -> WebSocket:
    return WebSocket(parse_address("wss://127.0.0.1:7700"))


async def waiting(work: asyncio.Task[bytes]) -> bool:
    """Whether it still waits after all that is ready was done."""
    for _ in range(3):
        await asyncio.sleep(0)
    return not work.done()


async def test_frames_are_read_however_they_are_cut() -> None:
    connection, paper = opened()
    stream = FrameStream(connection)
    assert paper.high == 1000
    data = frame(b"one") + frame(b"") + frame(b"three")
    async with asyncio.TaskGroup() as group:
        first = group.create_task(stream.read_frame(5))
        for byte in data[:6]:
            connection.data_received(bytes([byte]))
            assert await waiting(first)
        connection.data_received(data[6:])
    assert [first.result(), await stream.read_frame(5), await stream.read_frame(5)] == [
        b"one",
        b"",
        b"three",
    ]


async def test_a_frame_that_is_too_long_is_refused_before_it_came() -> None:
    connection, _ = opened()
    stream = FrameStream(connection)
    connection.data_received((6).to_bytes(4, "big"))
    with pytest.raises(LinkFailure, match="6 bytes, at most 5") as failed:
        await stream.read_frame(5)
    assert failed.value.reason is Reason.OVERSIZED_FRAME


async def test_who_sends_far_ahead_is_not_read_until_somebody_reads() -> None:
    connection, paper = opened()
    stream = FrameStream(connection)
    connection.data_received(bytes(64 * 1024))
    assert paper.reads
    connection.data_received(b"x")
    assert not paper.reads
    pupil = Pupil()
    stream.hand_over(pupil)
    assert pupil.heard == [bytes(64 * 1024) + b"x"]
    assert paper.reads


async def test_who_waits_for_a_frame_is_told_why_none_comes() -> None:
    connection, _ = opened()
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(_reason(FrameStream(connection)))
        await asyncio.sleep(0)
        connection.connection_lost(None)
    assert reading.result() is Reason.REMOTE_CLOSED
    assert connection.lost.done()


async def _reason(stream: FrameStream) -> Reason:
    with pytest.raises(LinkFailure) as failed:
        await stream.read_frame(100)
    return failed.value.reason


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (None, Reason.REMOTE_CLOSED),
        (ConnectionResetError(), Reason.REMOTE_CLOSED),
        (ssl.SSLError(), Reason.TLS_FAILED),
    ],
)
async def test_the_loss_has_a_reason_and_is_told_once(error: Exception | None, reason: Reason) -> None:
    connection, _ = opened()
    pupil = Pupil()
    connection.hand_over(pupil)
    connection.data_received(b"last")
    connection.connection_lost(error)
    connection.data_received(b"after the end")
    assert pupil.heard == [b"last", reason]


async def test_our_own_reason_stands_before_that_of_the_loss() -> None:
    connection, paper = opened()
    pupil = Pupil()
    connection.hand_over(pupil)
    connection.close(Reason.FLOODING)
    assert (paper.end, connection.is_open) == ("closed", False)
    connection.abort()
    connection.connection_lost(ssl.SSLError())
    assert (paper.end, pupil.heard) == ("aborted", [Reason.FLOODING])


async def test_whoever_closes_again_or_aborts_in_the_end_does_no_harm() -> None:
    connection, paper = opened()
    connection.close()
    connection.close()
    assert paper.end == "closed"
    connection.abort()
    assert paper.end == "aborted", "the other end never answered our leave"


async def test_a_connection_that_is_gone_is_left_alone() -> None:
    connection, paper = opened()
    paper.close()  # By itself: the other end took its leave.
    connection.connection_lost(None)
    connection.close()
    connection.abort()
    assert paper.end == "closed"


async def test_who_takes_over_a_lost_connection_gets_what_came_and_the_loss() -> None:
    connection, _ = opened()
    connection.data_received(b"came")
    connection.connection_lost(None)
    pupil = Pupil()
    connection.hand_over(pupil)
    assert pupil.heard == [b"came", Reason.REMOTE_CLOSED]


async def test_a_full_transport_is_seen_and_its_end_told() -> None:
    connection, _ = opened()
    pupil = Pupil()
    connection.hand_over(pupil)
    connection.pause_writing()
    assert connection.is_paused
    connection.resume_writing()
    assert not connection.is_paused
    assert pupil.heard == ["writable"]


async def test_one_write_is_one_write_below() -> None:
    connection, paper = opened()
    connection.write(b"abc")
    assert paper.written == [b"abc"]
    assert connection.unsent == 3


async def test_a_websocket_opens_before_frames_and_carries_them() -> None:
    (near, there), (far, here) = opened(dialler()), opened(WebSocket())
    assert there.written[0].startswith(b"GET /linnet HTTP/1.1\r\n"), "the request goes out at once"
    assert not near.is_open
    async with asyncio.TaskGroup() as group:
        opening = group.create_task(near.wait_open())
        await asyncio.sleep(0)
        far.data_received(there.written.pop())
        assert far.is_open
        await asyncio.sleep(0)
        assert not opening.done()
        near.data_received(here.written.pop())
    assert near.is_open
    near.write(frame(b"one") + frame(b"two"))
    (wrapped,) = there.written
    stream = FrameStream(far)
    far.data_received(wrapped)
    assert [await stream.read_frame(10), await stream.read_frame(10)] == [b"one", b"two"]


async def test_a_stranger_that_speaks_no_websocket_is_answered_and_closed() -> None:
    connection, paper = opened(WebSocket())
    connection.data_received(b"GET /index.html HTTP/1.1\r\nHost: x\r\n\r\n")
    with pytest.raises(LinkFailure) as failed:
        await connection.wait_open()
    assert (paper.end, failed.value.reason) == ("closed", Reason.PROTOCOL_ERROR)
    assert paper.written[0].startswith(b"HTTP/1.1 4")


async def test_pings_without_end_from_one_who_reads_no_answer_cut_it() -> None:
    (near, there), (far, here) = opened(dialler()), opened(WebSocket())
    far.data_received(there.written.pop())
    near.data_received(here.written.pop())
    ping = b"\x89\x80" + bytes(4)  # Empty, masked with zeros.
    far.data_received(ping)
    assert (here.end, len(here.written)) == ("", 1)
    far.pause_writing()
    far.data_received(ping)
    far.connection_lost(None)
    assert (here.end, await _reason(FrameStream(far))) == ("aborted", Reason.SLOW_PEER)
