"""Whom a node knew when it was last up."""

from __future__ import annotations

import pytest
from tests.overlay.kademlia.people import contact

from linnet.core.errors import StoreError
from linnet.overlay.kademlia.known import KEY, MOST, SPACE, Known
from linnet.store.memory import MemoryStore


@pytest.mark.parametrize(("count", "kept"), [(0, 0), (5, 5), (64, 64), (65, 33), (200, 50)])
def test_some_of_all_are_written_down(count: int, kept: int) -> None:
    cells = MemoryStore().cells
    everybody = tuple(map(contact, range(count)))
    Known(cells).save(everybody)
    found = Known(cells).load()
    assert len(found) == kept <= MOST
    assert set(found) <= set(everybody)
    assert found[:1] == everybody[:1]


def test_nothing_was_known_before_and_what_cannot_be_read_is_told() -> None:
    cells = MemoryStore().cells
    assert Known(cells).load() == ()
    cells.put(SPACE, KEY, b"\xc1")
    with pytest.raises(StoreError, match="cannot be read"):
        Known(cells).load()
