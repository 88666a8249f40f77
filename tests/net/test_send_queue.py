from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.net.link import SendQueue
from linnet.net.transport import Lane

frames = st.lists(st.tuples(st.binary(min_size=1, max_size=30), st.sampled_from(Lane)), max_size=40)


LANES = {b"c": Lane.CONTROL, b"d": Lane.DATA, b"l": Lane.LAST}


def test_control_goes_before_data_and_the_last_word_behind_it() -> None:
    queue = SendQueue()
    for frame in (b"l1", b"d1", b"c1", b"d2", b"c2"):
        queue.put(frame, 0.0, LANES[frame[:1]])
    assert queue.take(1000) == b"c1c2d1d2l1"
    assert (len(queue), queue.bytes) == (0, 0)


def test_a_write_ends_with_the_frame_that_reaches_its_limit() -> None:
    queue = SendQueue()
    for frame in (b"aaaa", b"bbbb", b"cccc"):
        queue.put(frame, 0.0, Lane.DATA)
    assert queue.take(5) == b"aaaabbbb"
    assert queue.take(1) == b"cccc"
    assert queue.take(1) == b""


def test_the_oldest_of_both_lanes_counts() -> None:
    queue = SendQueue()
    assert queue.oldest() is None
    queue.put(b"data", 5.0, Lane.DATA)
    assert queue.oldest() == 5.0
    queue.put(b"control", 7.0, Lane.CONTROL)
    assert queue.oldest() == 5.0
    queue.take(1)
    assert queue.oldest() == 5.0, "control went first"


def test_what_is_given_up_is_counted() -> None:
    queue = SendQueue()
    queue.put(b"data", 0.0, Lane.DATA)
    queue.put(b"control", 0.0, Lane.CONTROL)
    assert queue.clear() == (2, 11)
    assert (len(queue), queue.bytes, queue.oldest()) == (0, 0, None)


def test_without_order_a_write_holds_one_lane() -> None:
    queue = SendQueue()
    for frame in (b"l1", b"d1", b"c1", b"d2", b"c2", b"d3"):
        queue.put(frame, 0.0, LANES[frame[:1]])
    assert queue.take_lane(1000) == (b"c1c2", Lane.CONTROL)
    assert queue.take_lane(3) == (b"d1d2", Lane.DATA)
    assert queue.take_lane(3) == (b"d3", Lane.DATA)
    assert queue.take_lane(3) == (b"l1", Lane.LAST)
    assert (len(queue), queue.bytes) == (0, 0)


@given(frames, st.integers(min_value=1, max_value=50))
def test_all_goes_out_once_and_in_order_within_its_lane(frames: list[tuple[bytes, Lane]], limit: int) -> None:
    queue = SendQueue()
    for frame, lane in frames:
        queue.put(frame, 0.0, lane)
    assert queue.bytes == sum(len(frame) for frame, _ in frames)
    taken = b""
    while queue.bytes:
        taken += queue.take(limit)
    assert taken == b"".join(frame for lane in Lane for frame, given in frames if given is lane)
