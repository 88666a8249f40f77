"""The header says how far the modifiers go, whatever the body does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.places.channel.packet import LARGEST_HEADER, Header, encode_header, read_header
from linnet.places.config import PlacesConfig

_deltas = st.none() | st.integers(0, 2**63 - 1)


@given(st.integers(1, 4 * 1024 * 1024), _deltas, st.binary(min_size=32, max_size=32), st.binary(max_size=9))
def test_a_header_is_read_back_and_its_length_told(
    length: int, delta: int | None, sha: bytes, rest: bytes
) -> None:
    header = Header(length, delta, None if delta is None or sha[0] % 2 else sha)
    data = encode_header(header)
    assert len(data) <= LARGEST_HEADER
    assert read_header(data + rest) == (header, len(data))


@given(_deltas, st.binary(min_size=32, max_size=32))
def test_a_header_that_is_not_complete_asks_for_more(delta: int | None, sha: bytes) -> None:
    data = encode_header(Header(7, delta, None if delta is None else sha))
    assert all(read_header(data[:cut]) is None for cut in range(len(data)))


def test_layout_is_big_endian() -> None:
    header = Header(258, 3, bytes(range(32)))
    assert encode_header(header) == b"\x01\x03\x00\x00\x01\x02" + b"\x00" * 7 + b"\x03" + bytes(range(32))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x02\x00\x00\x00\x00\x07", Reason.UNSUPPORTED),
        (b"\x01\x04\x00\x00\x00\x07", Reason.MALFORMED),
        (b"\x01\x02\x00\x00\x00\x07" + bytes(32), Reason.MALFORMED),  # a hash without a delta
        (b"\x01\x00\x00\x00\x00\x00", Reason.MALFORMED),
        (b"\x01\x00\x00\x00\x04\x01", Reason.TOO_LARGE),
        (b"\x01\x01\x00\x00\x00\x07" + b"\xff" * 8, Reason.MALFORMED),
    ],
)
def test_what_is_no_header_is_refused_with_its_reason(data: bytes, reason: Reason) -> None:
    with pytest.raises(RemoteError, match="offset") as caught:
        read_header(data, PlacesConfig(modifier_bytes=1024))
    assert caught.value.reason == reason
