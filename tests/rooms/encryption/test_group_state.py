"""The group of an encrypted room at one device, and the cells that it is kept in."""

from __future__ import annotations

import pytest
from tests.rooms.encryption.test_guarding import devices

from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.groups.labels import Device
from linnet.rooms.commands import Sent, SetMembership
from linnet.rooms.encryption import group_state
from linnet.rooms.encryption.group_state import HeldGroup, Keyring, Text, Texts, Unread
from linnet.rooms.event_types import Membership
from linnet.rooms.room_store import Late
from linnet.sim.nemesis.open_node import DamageableStore
from linnet.store.memory import MemoryStore


def test_who_is_banned_may_hold_none_and_is_surplus_until_it_is_removed() -> None:
    world = devices("ann", "ben", "cat")
    cat = Device(world.person("cat"), DeviceId(world.identity["cat"].card.device))
    ann = world.group("ann")
    assert ann.may_hold(cat)
    assert ann.surplus() == []
    (member,) = (member for member, device in ann.members().items() if device == cat)
    world.get("ann", SetMembership(world.room, cat.author, Membership.BAN), Sent)
    assert not ann.may_hold(cat)
    assert ann.surplus() == [member]
    world.run(10.0)
    assert (ann.surplus(), ann.missing()) == ([], [])
    assert cat not in ann.members().values()


def test_the_state_is_the_same_after_a_restart() -> None:
    world = devices("ann", "ben")
    ann, now = world.group("ann"), world.network.now
    again = HeldGroup(ann._context, ann._control, ann._memory, ann._out)
    assert again.known_state == ann.known_state == again.state(now)
    assert again.members() == ann.members()
    version = again.version
    again.keep_keys(again.state(now))
    assert again.version == version
    again.keep(again.state(now))
    assert again.version == version + 1


ROOM = TopicId(bytes(32))


EVENT, OTHER = EventId(b"e" * 32), EventId(b"o" * 32)


DEVICE = Device(AuthorId(b"a" * 32), DeviceId(b"d" * 8))


def test_all_of_it_is_there_after_a_restart() -> None:
    store = MemoryStore()
    ring = Keyring(ROOM, store.cells)
    assert not ring.parts
    ring.keep_state({b"": b"all", b"m1": b"one", b"m2": b"two"})
    ring.keep_state({b"": b"all", b"m1": b"changed"})
    ring.keep_bundle(DEVICE, EVENT)
    ring.use_identity(b"identity")
    ring.keep_stuck(OTHER, True)
    texts = Texts(ROOM, store.cells)
    texts.keep_text(EVENT, b"hello", b"k" * 44)
    texts.keep_why(OTHER, Reason.KEY_MISSING, 7, hope=True)
    texts.repaired.add(EVENT, 3)
    again, texts = Keyring(ROOM, store.cells), Texts(ROOM, store.cells)
    assert again.parts == {b"": b"all", b"m1": b"changed"}
    assert again.bundles == {DEVICE: EVENT}
    assert again.is_used(b"identity")
    assert not again.is_used(b"another")
    assert texts.text(EVENT) == Text(b"hello")
    assert texts.text(OTHER) == Unread(Reason.KEY_MISSING, 7)
    assert texts.shared_key(EVENT) == b"k" * 44
    assert list(texts.shared()) == [(EVENT, b"k" * 44)]
    assert list(again.stuck) == [OTHER]
    assert list(texts.unread) == [OTHER]
    assert texts.repaired == {1: Late(EVENT, 3)}


def test_of_what_was_read_late_so_much_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_state, "REPAIRED", 2)
    store = MemoryStore()
    texts = Texts(ROOM, store.cells)
    for position in range(3):
        texts.repaired.add(EVENT, position)
    assert texts.repaired == {2: Late(EVENT, 1), 3: Late(EVENT, 2)} == Texts(ROOM, store.cells).repaired


def test_what_is_read_at_last_is_unread_no_more() -> None:
    texts = Texts(ROOM, MemoryStore().cells)
    texts.keep_why(EVENT, Reason.KEY_MISSING, 7, hope=True)
    texts.keep_text(EVENT, b"at last", None)
    assert texts.text(EVENT) == Text(b"at last")
    assert not texts.unread
    assert texts.shared_key(EVENT) is None


def test_what_there_is_no_hope_for_is_not_tried_again() -> None:
    texts = Texts(ROOM, MemoryStore().cells)
    texts.keep_why(EVENT, Reason.KEY_MISSING, 7, hope=True)
    texts.keep_why(EVENT, Reason.UNDECRYPTABLE, 7, hope=False)
    assert not texts.unread
    assert texts.text(EVENT) == Unread(Reason.UNDECRYPTABLE, 7)
    assert texts.text(OTHER) is None


def test_rooms_are_apart() -> None:
    cells = MemoryStore().cells
    Texts(ROOM, cells).keep_text(EVENT, b"here", b"k" * 44)
    Texts(ROOM, cells).keep_why(OTHER, Reason.KEY_MISSING, 7, hope=True)
    Keyring(ROOM, cells).keep_state({b"": b"all"})
    Keyring(ROOM, cells).use_identity(b"identity")
    elsewhere = TopicId(b"2" * 32)
    texts, ring = Texts(elsewhere, cells), Keyring(elsewhere, cells)
    assert (texts.text(EVENT), texts.shared_key(EVENT), list(texts.unread)) == (None, None, [])
    assert not ring.parts
    assert not ring.is_used(b"identity")


def test_only_what_changed_is_written() -> None:
    store = MemoryStore()
    ring = Keyring(ROOM, store.cells)
    ring.keep_state({b"": b"all", b"m": b"one"})
    store.commit(lambda: None)
    ring.keep_state({b"": b"all", b"m": b"two"})
    assert len(store._journal) == 1


def test_a_damaged_text_is_unread_and_what_others_say_of_it_counts() -> None:
    store = DamageableStore()
    texts = Texts(ROOM, store.cells)
    texts.keep_text(EVENT, b"hello", b"k" * 44)
    texts.keep_text(OTHER, b"there", None)
    store.cells.spoil(f"group.text/{ROOM.hex()}", EVENT)
    assert texts.text(EVENT) == Unread(Reason.DAMAGED, 0)
    assert texts.text(OTHER) == Text(b"there")
    assert texts.tally() == (1, {Reason.DAMAGED: 1})
    assert texts.shared_key(EVENT) == b"k" * 44
    texts.keep_text(EVENT, b"hello", None)
    assert texts.text(EVENT) == Text(b"hello")
    store.cells.spoil(f"group.text/{ROOM.hex()}", EVENT)
    texts.forget_text(EVENT)
    assert texts.text(EVENT) == Text(b"")
    assert texts.shared_key(EVENT) is None
