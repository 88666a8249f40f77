from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.net.outbox import Outbox

frames = st.lists(st.tuples(st.binary(min_size=1, max_size=30), st.booleans()), max_size=40)


def test_control_goes_before_data() -> None:
    outbox = Outbox()
    for frame, bulk in ((b"d1", True), (b"c1", False), (b"d2", True), (b"c2", False)):
        outbox.put(frame, 0.0, bulk)
    assert outbox.take(1000) == b"c1c2d1d2"
    assert (len(outbox), outbox.bytes) == (0, 0)


def test_a_write_ends_with_the_frame_that_reaches_its_limit() -> None:
    outbox = Outbox()
    for frame in (b"aaaa", b"bbbb", b"cccc"):
        outbox.put(frame, 0.0, bulk=True)
    assert outbox.take(5) == b"aaaabbbb"
    assert outbox.take(1) == b"cccc"
    assert outbox.take(1) == b""


def test_the_oldest_of_both_lanes_counts() -> None:
    outbox = Outbox()
    assert outbox.oldest() is None
    outbox.put(b"data", 5.0, bulk=True)
    assert outbox.oldest() == 5.0
    outbox.put(b"control", 7.0, bulk=False)
    assert outbox.oldest() == 5.0
    outbox.take(1)
    assert outbox.oldest() == 5.0, "control went first"


def test_what_is_given_up_is_counted() -> None:
    outbox = Outbox()
    outbox.put(b"data", 0.0, bulk=True)
    outbox.put(b"control", 0.0, bulk=False)
    assert outbox.clear() == (2, 11)
    assert (len(outbox), outbox.bytes, outbox.oldest()) == (0, 0, None)


@given(frames, st.integers(min_value=1, max_value=50))
def test_all_goes_out_once_and_in_order_within_its_lane(frames: list[tuple[bytes, bool]], limit: int) -> None:
    outbox = Outbox()
    for frame, bulk in frames:
        outbox.put(frame, 0.0, bulk)
    assert outbox.bytes == sum(len(frame) for frame, _ in frames)
    taken = b""
    while outbox.bytes:
        taken += outbox.take(limit)
    lanes = [frame for frame, bulk in frames if not bulk] + [frame for frame, bulk in frames if bulk]
    assert taken == b"".join(lanes)
