"""Which keys of epochs are kept, and until when."""

from __future__ import annotations

from linnet.core.ids import DeviceId
from linnet.groups import labels as group_labels
from linnet.streams.sealed.stream_keys import CATCH_UP, LABELS, MOST, Epochs, begin, find, prune

DAY = 86_400.0
ME, OTHER = DeviceId(b"m" * 8), DeviceId(b"o" * 8)


def days(count: int) -> Epochs:
    keys: Epochs = ()
    for day in range(1, count + 1):
        keys = begin(keys, ME, day, bytes((day,)) * 32, day * DAY)
    return keys


def kept(keys: Epochs, now: float, count: int = 3, seconds: float = 7 * DAY) -> list[int]:
    return [known.epoch for known in prune(keys, count, seconds, now)]


def test_a_key_is_found_by_device_and_number() -> None:
    keys = begin(days(2), OTHER, 1, b"x" * 32, 3 * DAY)
    found = find(keys, OTHER, 1)
    assert found is not None
    assert found.key == b"x" * 32
    assert find(keys, ME, 3) is None
    assert begin(keys, ME, 2, b"another" + bytes(25), 4 * DAY) is keys


def test_the_present_key_stays_and_three_before_it() -> None:
    assert kept(days(1), 1_000 * DAY) == [1]
    assert kept(days(6), 6 * DAY + 1) == [3, 4, 5, 6]
    assert kept(days(6), 6 * DAY + 1, count=0) == [6]


def test_none_outlives_its_time() -> None:
    keys = days(3)  # the first ended on day 2, the second on day 3
    assert kept(keys, 9 * DAY - 1) == [1, 2, 3]
    assert kept(keys, 9 * DAY) == [2, 3]
    assert kept(keys, 10 * DAY) == [3]


def test_what_came_at_once_is_kept_for_an_hour_to_be_read() -> None:
    keys: Epochs = ()
    for epoch in range(1, 11):
        keys = begin(keys, ME, epoch, bytes((epoch,)) * 32, DAY)
    assert kept(keys, DAY + CATCH_UP - 1) == list(range(1, 11))
    assert kept(keys, DAY + CATCH_UP) == [7, 8, 9, 10]


def test_there_is_a_bound_whatever_the_time() -> None:
    keys: Epochs = ()
    for epoch in range(1, MOST + 11):
        keys = begin(keys, ME, epoch, bytes(32), DAY)
    assert kept(keys, DAY) == list(range(11, MOST + 11))


def test_nothing_is_made_anew_where_nothing_goes() -> None:
    keys = days(2)
    assert prune(keys, 3, 7 * DAY, 2 * DAY) is keys


def test_keys_do_not_show() -> None:
    assert "0101" not in repr(days(1))
    assert b"\x01" * 4 not in repr(days(1)).encode()


def test_no_label_is_used_twice_nor_by_groups() -> None:
    assert len({*LABELS, *group_labels.ALL}) == len(LABELS) + len(group_labels.ALL)
