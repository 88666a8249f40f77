from __future__ import annotations

from random import Random

import pytest

from linnet.core.hello import Hello
from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId, TopicId
from linnet.core.inputs import DialFailed
from linnet.core.reasons import Reason
from linnet.core.spaces import words_for
from linnet.core.stores import Entry
from linnet.peer.interface import Effect, Input
from linnet.sim.nemesis.budget import Account
from linnet.sim.nemesis.course import WAYS
from linnet.sim.nemesis.open_node import DamageableStore, Disk, OpenMachine
from linnet.store.memory import MemoryStore
from linnet.trace.columns import ColumnTrace

PEER = PeerId(b"p" * 32)
GONE = DialFailed(PEER, Reason.CONNECTION_REFUSED)


class Clerk:
    """Notes what it is told and when; fails if told to."""

    hello = Hello(1, 1, {}, (), 1, (), "clerk")

    def __init__(self) -> None:
        self.told: list[tuple[Input, float]] = []
        self.is_ill = False

    def handle(self, event: Input, now: float) -> list[Effect]:
        if self.is_ill:
            raise ValueError("ill")
        self.told.append((event, now))
        return []


def test_a_machine_that_is_paused_is_told_nothing_and_forgets_nothing() -> None:
    clerk = Clerk()
    machine = OpenMachine("a", clerk, Account(), lambda error: None, 0.0)
    machine.waiting = []
    machine.handle(GONE, 1.0)
    assert clerk.told == []
    assert machine.waiting == [GONE]


def test_a_wrong_clock_is_what_the_machine_sees() -> None:
    clerk = Clerk()
    OpenMachine("a", clerk, Account(), lambda error: None, 3600.0).handle(GONE, 1.0)
    assert clerk.told == [(GONE, 3601.0)]


def test_an_error_of_a_machine_ends_its_node_and_is_told() -> None:
    clerk = Clerk()
    errors: list[Exception] = []
    clerk.is_ill = True
    assert OpenMachine("a", clerk, Account(), errors.append, 0.0).handle(GONE, 1.0) == []
    assert [str(error) for error in errors] == ["ill"]


def test_a_full_disk_ends_its_node_instead_of_committing() -> None:
    store, ended, done = MemoryStore(), [], []
    disk = Disk(store, lambda: ended.append(True))
    store.cells.put("space", b"key", b"1")
    disk.commit(lambda: done.append(True))
    disk.is_full = True
    store.cells.put("space", b"key", b"2")
    disk.commit(lambda: done.append(True))
    disk.rollback()
    assert (done, ended) == ([True], [True])
    assert store.cells.get("space", b"key") == b"1"


def test_what_is_damaged_is_left_out_told_once_and_mended_by_a_sound_copy() -> None:
    store = DamageableStore()
    owner = (AuthorId(b"a" * 32), DeviceId(b"d" * 16))
    topic = TopicId(b"t" * 32)
    entries = [Entry(topic, *owner, n, 1, EventId(bytes([n]) * 32), 1.0, b"raw") for n in range(3)]
    for entry in entries:
        store.log.append(entry)
    store.log.damage(Random(1))
    (damage,) = store.log.take_damage()
    assert store.log.take_damage() == []
    (lost,) = [each for each in entries if each.head == damage.head]
    others = [each for each in entries if each is not lost]
    assert store.log.get(lost.head) is None
    assert [each for _, each in store.log.read(topic, 0, 2)] == others
    assert store.log.chain(topic, *owner, 0, 9, 2) == others
    assert store.log.is_damaged(damage)
    store.log.append(lost)
    assert not store.log.is_damaged(damage)
    assert [each for _, each in store.log.read(topic, 0, 9)] == entries


def test_an_empty_store_has_nothing_to_damage() -> None:
    store = DamageableStore()
    store.log.damage(Random(1))
    assert store.log.take_damage() == []
    assert store.cells.damage(Random(1)) is None


@pytest.mark.parametrize("way", WAYS)
def test_all_that_nodes_keep_has_words_and_any_of_it_may_be_damaged(way: str) -> None:
    world = WAYS[way](1, ColumnTrace())
    world.set_up()
    world.run(30.0)
    for store in world._kept.values():
        spaces = [space for space, held in store.cells._spaces.items() if held]
        assert [space for space in spaces if words_for(space) == space] == []
        found = [store.cells.damage(Random(seed)) for seed in range(100)]
        assert {damage.space for damage in found if damage} <= set(spaces)
