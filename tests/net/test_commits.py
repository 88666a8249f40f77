from __future__ import annotations

import threading
from collections.abc import Callable

from linnet.core.effects import Deliver
from linnet.net.driver import Commits
from linnet.peer.interface import Promise
from linnet.store.memory import MemoryStore


class LateStore(MemoryStore):
    """Commits are done when the test calls what was kept."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Callable[[], None]] = []

    def commit(self, done: Callable[[], None]) -> None:
        super().commit(lambda: self.waiting.append(done))


def promises(*numbers: int) -> list[Promise]:
    return [Deliver(number, ()) for number in numbers]


async def test_a_store_that_is_done_at_once_keeps_nobody_waiting() -> None:
    performed: list[Promise] = []
    commits = Commits(MemoryStore(), performed.append, lambda: None, limit=10)
    commits.handled()
    commits.hold(promises(1, 2))
    assert performed == []
    commits.commit()
    assert performed == promises(1, 2)
    assert await commits.settled(0.0)


async def test_nothing_handled_is_nothing_to_commit() -> None:
    store = LateStore()
    commits = Commits(store, lambda _: None, lambda: None, limit=10)
    commits.commit()
    assert store.waiting == []


async def test_groups_under_way_keep_their_order() -> None:
    store, performed = LateStore(), list[Promise]()
    commits = Commits(store, performed.append, lambda: None, limit=10)
    for number in range(3):
        commits.handled()
        commits.hold(promises(number))
        commits.commit()
    assert not await commits.settled(0.0)
    thread = threading.Thread(target=lambda: [done() for done in store.waiting])
    thread.start()
    thread.join()
    assert performed == [], "another thread performs nothing"
    assert await commits.settled(5.0)
    assert performed == promises(0, 1, 2)


async def test_a_store_that_lags_is_noticed_until_it_has_caught_up() -> None:
    store, landings = LateStore(), list[int]()
    commits = Commits(store, lambda _: None, lambda: landings.append(1), limit=3)
    for _ in range(3):
        assert not commits.is_behind
        commits.handled()
    commits.commit()
    assert commits.is_behind
    store.waiting.pop()()
    assert not commits.is_behind
    assert landings == [1]


async def test_what_is_abandoned_is_never_performed() -> None:
    store, performed = LateStore(), list[Promise]()
    commits = Commits(store, performed.append, lambda: None, limit=10)
    commits.handled()
    commits.hold(promises(1))
    store.cells.put("test", b"key", b"value")
    commits.abandon()
    commits.commit()
    assert (store.waiting, performed, store.cells.get("test", b"key")) == ([], [], None)
