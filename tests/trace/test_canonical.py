from __future__ import annotations

import hashlib

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from linnet.trace.canonical import microseconds, seconds, trace_sha256
from linnet.trace.records import Kind, Record, Row, row_of

times = st.integers(min_value=0, max_value=4_102_444_800_000_000)  # Until the year 2100.


@given(times)
def test_a_time_goes_through_floats_unharmed(time: int) -> None:
    assert microseconds(seconds(time)) == time


@given(st.floats(min_value=0, max_value=4e9))
def test_rounding_twice_changes_nothing(now: float) -> None:
    once = seconds(microseconds(now))
    assert seconds(microseconds(once)) == once
    assert abs(once - now) < 1e-6


def rows(*numbers: int) -> list[Row]:
    return [row_of(Record(Kind.SENT, seq=number), 1.5 + number, b"n" * 32, number) for number in numbers]


def test_the_hash_is_over_the_columns_with_time_in_microseconds() -> None:
    array = [2_500_000, b"n" * 32, 1, "sent", None, None, None, 1, 1, None, None, None, None, None]
    assert trace_sha256(rows(1)) == hashlib.sha256(msgspec.msgpack.encode(array)).hexdigest()
    assert trace_sha256([]) == hashlib.sha256().hexdigest()


def test_order_and_digits_below_a_microsecond() -> None:
    assert trace_sha256(rows(1, 2)) != trace_sha256(rows(2, 1))
    near = [row._replace(time=row.time + 1e-7) for row in rows(1, 2)]
    assert trace_sha256(near) == trace_sha256(rows(1, 2))
