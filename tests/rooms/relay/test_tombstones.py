"""What a relay kept and keeps no longer."""

from __future__ import annotations

from linnet.core.ids import AuthorId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.rooms.messages import Tombstone
from linnet.rooms.relay.event_index import GoneEvent, Tombstones
from linnet.store.memory import MemoryStore

ROOM = TopicId(b"r" * 32)
ANN, BEN = AuthorId(b"a" * 32), AuthorId(b"b" * 32)


def event(number: int) -> EventId:
    return EventId(number.to_bytes(32, "big"))


def gone(number: int, author: AuthorId = ANN, end: int = 0) -> GoneEvent:
    return GoneEvent(event(number), author, Reason.RETENTION, end)


def test_they_are_remembered_over_a_restart_up_to_a_number() -> None:
    store = MemoryStore()
    first = Tombstones(ROOM, store.cells, 3)
    for number in range(5):
        first.add(gone(number))
    again = Tombstones(ROOM, store.cells, 3)
    for stones in (first, again):
        assert [stones.reason(event(number)) for number in range(5)] == [None, None, *[Reason.RETENTION] * 3]
        assert (len(stones._gone), stones.next) == (3, 5)
    assert Tombstones(TopicId(b"s" * 32), store.cells, 3).reason(event(4)) is None


def test_everyone_is_told_of_their_own_in_pages() -> None:
    stones = Tombstones(ROOM, MemoryStore().cells, 100)
    for number in range(6):
        stones.add(gone(number, ANN if number % 2 else BEN))
    page, after = stones.page_of(ANN, 0, 2)
    assert page == [Tombstone(event(1), Reason.RETENTION), Tombstone(event(3), Reason.RETENTION)]
    assert stones.page_of(ANN, after, 2) == ([Tombstone(event(5), Reason.RETENTION)], 6)
    assert stones.page_of(ANN, 6, 2) == ([], 6)


def test_whoever_was_there_before_they_went_has_not_been_told() -> None:
    stones = Tombstones(ROOM, MemoryStore().cells, 100)
    for number, end in enumerate((10, 10, 20)):
        stones.add(gone(number, end=end))
    assert [stones.first_untold(position) for position in (5, 10, 11, 20, 21)] == [0, 0, 2, 2, 3]


def test_none_are_kept_if_none_are_wanted() -> None:
    stones = Tombstones(ROOM, MemoryStore().cells, 0)
    stones.add(gone(1))
    assert (len(stones._gone), stones.first_untold(0), stones.page_of(ANN, 0, 9)) == (0, 0, ([], 0))


def test_all_can_be_forgotten() -> None:
    store = MemoryStore()
    stones = Tombstones(ROOM, store.cells, 9)
    stones.add(gone(1))
    stones.clear()
    assert len(Tombstones(ROOM, store.cells, 9)._gone) == 0
