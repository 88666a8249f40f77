"""Sealed pieces: sizes, and what opens them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import RemoteError
from linnet.core.limits import KIB
from linnet.core.reasons import Reason
from linnet.rooms.attachments import (
    CLASS_BYTES,
    TAG_BYTES,
    content_bytes,
    open_piece,
    padded_bytes,
    seal_piece,
    unpadded,
)
from linnet.rooms.messages import CHUNK_BYTES

KEY = bytes(32)


@given(st.sampled_from([KIB, 5000, 64 * KIB, CHUNK_BYTES]), st.data())
def test_a_piece_fits_and_its_size_tells_a_class(chunk_bytes: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, content_bytes(chunk_bytes, sealed=True)))
    carried = len(seal_piece(KEY, 1, bytes(padded_bytes(size, chunk_bytes))))
    assert size + TAG_BYTES <= carried <= chunk_bytes
    assert carried % CLASS_BYTES == 0 or carried == chunk_bytes
    assert carried - size - TAG_BYTES < CLASS_BYTES


@given(st.binary(max_size=100), st.integers(0, 2**64), st.integers(0, 2**64))
def test_a_piece_opens_under_its_own_number_alone(content: bytes, number: int, other: int) -> None:
    carried = seal_piece(KEY, number, content)
    assert open_piece(KEY, number, carried) == content
    if other != number:
        with pytest.raises(RemoteError) as error:
            open_piece(KEY, other, carried)
        assert error.value.reason is Reason.UNDECRYPTABLE
    with pytest.raises(RemoteError):
        open_piece(KEY, number, carried[:-1])


def test_padding_is_taken_off_if_it_is_padding() -> None:
    assert unpadded(b"ab".ljust(4080, b"\0"), 2, CHUNK_BYTES) == b"ab"
    for wrong in (b"ab", b"ab".ljust(4079, b"\0"), b"ab".ljust(4080, b"\1"), b"ab".ljust(8176, b"\0")):
        with pytest.raises(RemoteError) as error:
            unpadded(wrong, 2, CHUNK_BYTES)
        assert error.value.reason is Reason.MALFORMED
