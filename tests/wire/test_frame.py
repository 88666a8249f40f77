from __future__ import annotations

import tracemalloc
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import MalformedMessage
from linnet.core.limits import FRAME_BYTES
from linnet.core.reasons import Reason
from linnet.wire.frame import HEADER_BYTES, FrameReader, frame

LIMIT = 64
payloads = st.lists(st.binary(max_size=LIMIT), max_size=8)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """These bytes in pieces, empty ones among them."""
    edges = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [data[first:last] for first, last in pairwise(edges)]


@given(payloads, st.lists(st.integers(0, 600)))
def test_any_cut_of_the_stream_gives_the_same_frames(some: list[bytes], places: list[int]) -> None:
    reader = FrameReader(LIMIT)
    stream = b"".join(frame(payload, LIMIT) for payload in some)
    assert [got for piece in cut(stream, places) for got in reader.feed(piece)] == some
    assert reader.pending == 0


@given(st.binary(max_size=400), st.lists(st.integers(0, 400)))
def test_arbitrary_bytes_give_frames_or_one_error_however_they_are_cut(
    stream: bytes, places: list[int]
) -> None:
    whole, pieces = outcome([stream]), outcome(cut(stream, places))
    assert pieces[1] is whole[1]
    if whole[1] is None:
        assert pieces == whole == (plain_frames(stream), None)
    else:
        # What came before the fault in the same piece goes with the link.
        assert whole[1] is Reason.OVERSIZED_FRAME
        assert pieces[0] == plain_frames(stream)[: len(pieces[0])]


def outcome(pieces: list[bytes]) -> tuple[list[bytes], Reason | None]:
    reader, got = FrameReader(LIMIT), list[bytes]()
    try:
        for piece in pieces:
            got += reader.feed(piece)
            assert reader.pending < HEADER_BYTES + LIMIT
    except MalformedMessage as error:
        return got, error.reason
    return got, None


def plain_frames(stream: bytes) -> list[bytes]:
    """The frames of a stream up to its first fault, read in the plainest way."""
    got = []
    while len(stream) >= HEADER_BYTES:
        length = int.from_bytes(stream[:HEADER_BYTES], "big")
        if length > LIMIT or len(stream) < HEADER_BYTES + length:
            break
        got.append(stream[HEADER_BYTES : HEADER_BYTES + length])
        stream = stream[HEADER_BYTES + length :]
    return got


def test_the_largest_frame_and_one_more_byte() -> None:
    reader = FrameReader()
    assert reader.feed(frame(bytes(FRAME_BYTES))) == [bytes(FRAME_BYTES)]
    with pytest.raises(ValueError, match="at most 1048576 are allowed"):
        frame(bytes(FRAME_BYTES + 1))
    with pytest.raises(MalformedMessage) as caught:
        reader.feed((FRAME_BYTES + 1).to_bytes(4, "big"))
    assert caught.value.reason is Reason.OVERSIZED_FRAME


def test_a_reader_that_lost_its_place_stays_lost() -> None:
    reader = FrameReader(LIMIT)
    with pytest.raises(MalformedMessage):
        reader.feed((LIMIT + 1).to_bytes(4, "big") + bytes(200))
    for piece in (b"", b"\0", frame(b"good", LIMIT)):
        with pytest.raises(MalformedMessage) as caught:
            reader.feed(piece)
        assert caught.value.reason is Reason.OVERSIZED_FRAME


def test_an_announced_length_costs_nothing_before_it_came() -> None:
    tracemalloc.start()
    try:
        for length in (FRAME_BYTES, FRAME_BYTES + 1, 2**32 - 1):
            reader = FrameReader()
            with suppress(MalformedMessage):
                reader.feed(length.to_bytes(4, "big"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16_384


def test_no_more_than_a_few_frames_are_held() -> None:
    chunk = bytes(65_536)
    tracemalloc.start()
    try:
        reader = FrameReader()
        reader.feed(FRAME_BYTES.to_bytes(4, "big"))
        for _ in range(15):
            assert reader.feed(chunk) == []
            assert reader.pending <= HEADER_BYTES + FRAME_BYTES
        (whole,) = reader.feed(chunk)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(whole) == FRAME_BYTES
    assert peak < 4 * FRAME_BYTES


def test_a_frame_that_drips_in_is_not_copied_at_every_drop() -> None:
    """Or one small packet would cost us a megabyte moved, and its sender next to nothing."""
    reader, copies = FrameReader(), 0
    tracemalloc.start()
    try:
        reader.feed(FRAME_BYTES.to_bytes(4, "big"))
        reader.feed(bytes(FRAME_BYTES - 1_000))
        for _ in range(999):
            held, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            assert reader.feed(b"x") == []
            copies += tracemalloc.get_traced_memory()[1] - held > FRAME_BYTES // 2
    finally:
        tracemalloc.stop()
    assert copies <= 1  # room for the rest may have to be found once
    assert len(reader.feed(b"x")[0]) == FRAME_BYTES
