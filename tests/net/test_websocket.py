from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from linnet.core.reasons import Reason
from linnet.net.address import Address
from linnet.net.failure import LinkFailure
from linnet.net.websocket import MESSAGE_BYTES, PATH, WebSocket

ADDRESS = Address("wss", "127.0.0.1", 443)


def opened() -> tuple[WebSocket, WebSocket]:
    client, server = WebSocket(ADDRESS), WebSocket()
    assert server.feed(client.to_send()) == b""
    assert client.feed(server.to_send()) == b""
    assert client.is_open
    assert server.is_open
    return client, server


@given(st.lists(st.binary(min_size=1, max_size=2000), max_size=8), st.integers(1, 50))
def test_bytes_come_out_as_they_went_in_however_they_are_cut(said: list[bytes], cut: int) -> None:
    client, server = opened()
    there = b"".join(client.wrap(data) for data in said)
    carried = b"".join(server.feed(there[start : start + cut]) for start in range(0, len(there), cut))
    assert carried == b"".join(said)
    assert client.feed(b"".join(server.wrap(data) for data in said)) == b"".join(said)


def test_a_message_in_fragments_is_one_stream() -> None:
    client, server = opened()
    parts = [
        Frame(Opcode.BINARY, b"one ", fin=False),
        Frame(Opcode.CONT, b"two ", fin=False),
        Frame(Opcode.CONT, b"three"),
    ]
    assert server.feed(b"".join(part.serialize(mask=True) for part in parts)) == b"one two three"
    assert client.is_open


def test_a_ping_is_answered() -> None:
    _, server = opened()
    assert server.feed(Frame(Opcode.PING, b"?").serialize(mask=True)) == b""
    assert server.to_send() == Frame(Opcode.PONG, b"?").serialize(mask=False)


@pytest.mark.parametrize(
    "data",
    [
        Frame(Opcode.TEXT, b"hello").serialize(mask=True),
        Frame(Opcode.BINARY, b"unmasked").serialize(mask=False),
        b"\x82\xff" + (MESSAGE_BYTES + 1).to_bytes(8, "big") + bytes(4),
        b"\xff\xff\xff\xff",
    ],
    ids=["text", "unmasked", "too long", "garbage"],
)
def test_a_bad_frame_ends_it(data: bytes) -> None:
    _, server = opened()
    with pytest.raises(LinkFailure) as failure:
        server.feed(data)
    assert failure.value.reason is Reason.PROTOCOL_ERROR


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /linnet HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /linnet HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x00" * 100 + b"\r\n\r\n",
        b"GET /linnet HTTP/1.1\r\n" + b"x: y\r\n" * 300 + b"\r\n",
        b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n",
    ],
)
def test_a_bad_request_ends_it(request_bytes: bytes) -> None:
    server = WebSocket()
    with pytest.raises(LinkFailure):
        server.feed(request_bytes)
    assert not server.is_open


def test_an_answer_that_is_no_websocket_ends_it() -> None:
    client = WebSocket(ADDRESS)
    client.to_send()
    with pytest.raises(LinkFailure):
        client.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize("path", [PATH, "/elsewhere"])
@pytest.mark.parametrize("rest", [b"\x00\x01", b"\xed\xa0\x80", b"\xff" * 20])
def test_a_request_with_a_broken_frame_right_behind_it_is_a_broken_link(path: str, rest: bytes) -> None:
    """Found by `tests.fuzz`: the library had begun to close, and took no answer to the request any more."""
    request = (
        f"GET {path} HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ).encode()
    with pytest.raises(LinkFailure) as caught:
        WebSocket().feed(request + rest)
    assert caught.value.reason is Reason.PROTOCOL_ERROR
