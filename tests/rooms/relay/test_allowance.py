"""How many soft-failed control events are taken of one author a day."""

from __future__ import annotations

from linnet.core.ids import AuthorId, TopicId
from linnet.rooms.relay.ingest import Allowance
from linnet.store.memory import MemoryStore

ROOM, OTHER = TopicId(b"r" * 32), TopicId(b"s" * 32)
ANN, BEN = AuthorId(b"a" * 32), AuthorId(b"b" * 32)
DAY = 86_400.0


def test_each_author_has_so_many_a_day_in_each_room() -> None:
    store = MemoryStore()
    allowance = Allowance(ROOM, store.cells, 2)
    assert [allowance.spend(ANN, DAY + hour * 3600) for hour in range(3)] == [True, True, False]
    assert allowance.spend(BEN, DAY)
    assert Allowance(OTHER, store.cells, 2).spend(ANN, DAY)
    assert not Allowance(ROOM, store.cells, 2).spend(ANN, 2 * DAY - 1)  # a restart is no new day
    assert allowance.spend(ANN, 2 * DAY)


def test_a_room_that_is_left_is_forgotten_alone() -> None:
    store = MemoryStore()
    one, other = Allowance(ROOM, store.cells, 1), Allowance(OTHER, store.cells, 1)
    assert one.spend(ANN, DAY)
    assert other.spend(ANN, DAY)
    one.forget()
    assert one.spend(ANN, DAY)
    assert not other.spend(ANN, DAY)
