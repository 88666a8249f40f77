"""Spans of bytes beside a plain set of bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.places.channel.fragment_store import Spans, decode_spans, encode_spans

PIECES = [(offset, 3) for offset in range(0, 18, 3)]


@given(order=st.permutations(PIECES), removed=st.lists(st.sampled_from(PIECES), unique=True))
def test_spans_are_the_bytes_that_are_held(
    order: list[tuple[int, int]], removed: list[tuple[int, int]]
) -> None:
    spans = Spans([], [])
    held: set[int] = set()
    for offset, length in order:
        last = offset == 15
        assert spans.fits(offset, length, last)
        spans.add(offset, length, last)
        assert not spans.fits(offset, length, last)
        held |= set(range(offset, offset + length))
        assert _bytes(spans) == held
    assert spans.is_whole
    assert (spans.begins, spans.ends, spans.total) == ([0], [18], 18)
    for offset, length in removed:
        spans.remove(offset, offset + length)
        held -= set(range(offset, offset + length))
        assert _bytes(spans) == held
        assert not spans.is_whole
    for offset, length in removed:
        last = offset == 15
        assert spans.fits(offset, length, last)
        spans.add(offset, length, last)
    assert spans.begins == [0]
    assert decode_spans(encode_spans(spans)) == spans


def _bytes(spans: Spans) -> set[int]:
    ranges = [range(first, end) for first, end in zip(spans.begins, spans.ends, strict=True)]
    assert all(len(each) for each in ranges)
    assert spans.begins == sorted(spans.begins)
    assert all(end < begin for end, begin in zip(spans.ends, spans.begins[1:], strict=False))
    return {number for each in ranges for number in each}


def test_a_message_without_bytes_is_whole() -> None:
    spans = Spans([], [])
    spans.add(0, 0, True)
    assert spans.is_whole
    assert not spans.fits(0, 1, False)
