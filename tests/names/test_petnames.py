"""The names by which the user knows people."""

from __future__ import annotations

import pytest
from tests.names.people import person
from tests.raised import reason_of

from linnet.core.errors import BadText, Refused, StoreError
from linnet.core.reasons import Reason
from linnet.names.part import SPACE, Petnames
from linnet.store.memory import MemoryStore

ALICE, BOB = person("alice").author, person("bob").author


def test_names_are_kept_over_a_restart() -> None:
    store = MemoryStore()
    names = Petnames(store.cells, 10)
    assert (names.set_name("Bob", BOB), names.set_name("alice", ALICE)) == ("bob", "alice")
    again = Petnames(store.cells, 10)
    assert again.names == (("alice", ALICE), ("bob", BOB))
    again.remove_name("ALICE")
    assert (again.find_zone("alice"), again.find_zone("bob")) == (None, BOB)
    assert Petnames(store.cells, 10).names == (("bob", BOB),)


def test_a_name_does_not_change_hands_unnoticed() -> None:
    names = Petnames(MemoryStore().cells, 10)
    names.set_name("alice", ALICE)
    names.set_name("alice", ALICE)
    assert reason_of(Refused, names.set_name, "Alice", BOB) is Reason.IN_USE
    assert names.find_zone("alice") == ALICE


def test_what_cannot_be_is_refused() -> None:
    names = Petnames(MemoryStore().cells, 1)
    names.set_name("alice", ALICE)
    with pytest.raises(Refused, match="1 people have a name"):
        names.set_name("bob", BOB)
    with pytest.raises(Refused, match="nobody is known"):
        names.remove_name("carol")
    with pytest.raises(BadText):
        names.set_name("a.b", BOB)


def test_a_damaged_store_is_said_to_be_one() -> None:
    store = MemoryStore()
    store.cells.put(SPACE, b"alice", b"short")
    with pytest.raises(StoreError):
        Petnames(store.cells, 1)
