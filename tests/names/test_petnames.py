"""The names by which the user knows people."""

from __future__ import annotations

import pytest
from tests.names.people import person

from linnet.core.errors import BadText, Refused, StoreError
from linnet.core.reasons import Reason
from linnet.names.petnames import SPACE, Petnames
from linnet.store.memory import MemoryStore

ALICE, BOB = person("alice").author, person("bob").author


def test_names_are_kept_over_a_restart() -> None:
    store = MemoryStore()
    names = Petnames(store.cells, 10)
    assert (names.set("Bob", BOB), names.set("alice", ALICE)) == ("bob", "alice")
    again = Petnames(store.cells, 10)
    assert again.known() == (("alice", ALICE), ("bob", BOB))
    again.remove("ALICE")
    assert (again.find("alice"), again.find("bob")) == (None, BOB)
    assert Petnames(store.cells, 10).known() == (("bob", BOB),)


def test_a_name_does_not_change_hands_unnoticed() -> None:
    names = Petnames(MemoryStore().cells, 10)
    names.set("alice", ALICE)
    names.set("alice", ALICE)
    with pytest.raises(Refused) as error:
        names.set("Alice", BOB)
    assert error.value.reason is Reason.IN_USE
    assert names.find("alice") == ALICE


def test_what_cannot_be_is_refused() -> None:
    names = Petnames(MemoryStore().cells, 1)
    names.set("alice", ALICE)
    with pytest.raises(Refused, match="1 people have a name"):
        names.set("bob", BOB)
    with pytest.raises(Refused, match="nobody is known"):
        names.remove("carol")
    with pytest.raises(BadText):
        names.set("a.b", BOB)


def test_a_damaged_store_is_said_to_be_one() -> None:
    store = MemoryStore()
    store.cells.put(SPACE, b"alice", b"short")
    with pytest.raises(StoreError):
        Petnames(store.cells, 1)
