"""How much of each author is kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.core.ids import AuthorId, TopicId
from linnet.rooms.relay.event_index import Budget, Share, Usage
from linnet.store.memory import MemoryStore

ROOM = TopicId(b"r" * 32)
ANN, BEN = AuthorId(b"a" * 32), AuthorId(b"b" * 32)


def test_shares_outlive_a_restart_and_end_with_the_last_event() -> None:
    store = MemoryStore()
    usage = Usage(ROOM, store.cells, Budget(100))
    usage.add_event(ANN, 10, False, 1.0)
    usage.add_event(ANN, 20, True, 2.0)
    again = Usage(ROOM, store.cells, Budget(100))
    assert again.shares == {ANN: Share(2, 30, 1, 2000)}
    usage.remove_event(ANN, 10, False)
    assert usage.share_of(ANN) == Share(1, 20, 1, 2000)
    usage.remove_event(ANN, 20, True)
    assert usage.shares == Usage(ROOM, store.cells, Budget(100)).shares == {}


@given(st.lists(st.tuples(st.sampled_from((ANN, BEN)), st.integers(0, 50), st.booleans()), max_size=30))
def test_all_sums_agree(steps: list[tuple[AuthorId, int, bool]]) -> None:
    budget = Budget(200)
    usage = Usage(ROOM, MemoryStore().cells, budget)
    for author, size, state in steps:
        usage.add_event(author, size, state, 0.0)
    for author, size, state in steps[::2]:
        usage.remove_event(author, size, state)
    left = steps[1::2]
    assert (usage.events, usage.bytes, usage.states) == (
        len(left),
        sum(size for _, size, _ in left),
        sum(state for _, _, state in left),
    )
    assert (budget.events, budget.bytes) == (usage.events, usage.bytes)
    assert budget.bytes_left == max(0, 200 - usage.bytes)
