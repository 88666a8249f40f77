"""What a node keeps for others."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from linnet.core.errors import StoreError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.routing_table import NodeId, record_key
from linnet.overlay.kademlia.server import SPACE, ValueShelf
from linnet.overlay.kademlia.value_records import Stored, sign_record
from linnet.store.memory import MemoryStore

NOW = 1_800_000_000.0
OWNERS = [SigningKey.generate(Random(n).randbytes) for n in range(4)]
KEY, OTHER = record_key(b"test", b"music"), record_key(b"test", b"tech")
A, B = PeerId(b"a" * 32), PeerId(b"b" * 32)
CONFIG = KademliaConfig(candidates=2, records=4, giver_records=3, lifetime=600.0)


def record(
    owner: int = 0, key: NodeId = KEY, version: int = 0, life: int = 3600, body: bytes = b"x"
) -> Stored:
    return sign_record(OWNERS[owner], key, int(NOW * 1000) + version, int(NOW) + life, body)


def test_of_each_owner_the_newest_is_kept_and_it_survives_a_restart() -> None:
    store = MemoryStore()
    shelf = ValueShelf(store.cells, CONFIG)
    old, new, other = record(), record(version=1), record(owner=1)
    assert [shelf.put(each, A, NOW) for each in (old, new, other)] == [None] * 3
    assert shelf.put(old, A, NOW) is Reason.STALE
    assert shelf.find(KEY, NOW) == (new, other)
    assert set(ValueShelf(store.cells, CONFIG).find(KEY, NOW)) == {new, other}
    assert shelf.find(OTHER, NOW) == ()


def test_it_goes_unless_it_is_handed_over_again() -> None:
    shelf = ValueShelf(MemoryStore().cells, CONFIG)
    shelf.put(record(), A, NOW)
    assert shelf.put(record(), A, NOW + 500) is None
    assert shelf.find(KEY, NOW + 1000) == (record(),)
    assert (shelf.sweep(NOW + 1099), shelf.sweep(NOW + 1100), len(shelf)) == (0, 1, 0)
    short = record(life=10)
    shelf.put(short, A, NOW)
    assert shelf.find(KEY, NOW + 10) == ()
    assert shelf.put(short, A, NOW + 10) is Reason.STALE


def test_what_was_let_in_while_our_clock_was_ahead_gives_way() -> None:
    shelf = ValueShelf(MemoryStore().cells, CONFIG)
    ahead = NOW + 3 * 365 * 86_400
    early = sign_record(OWNERS[0], KEY, int(ahead * 1000), int(ahead) + 3600, b"early")
    assert shelf.put(early, A, ahead) is None
    assert shelf.put(record(), A, NOW) is None
    assert shelf.find(KEY, NOW) == (record(),)


def test_what_is_false_is_not_kept_and_drives_out_nothing() -> None:
    shelf = ValueShelf(MemoryStore().cells, CONFIG)
    shelf.put(record(), A, NOW)
    forged = replace(record(version=9), body=b"forged")
    assert shelf.put(forged, B, NOW) is Reason.BAD_SIGNATURE
    assert shelf.put(record(body=b"another of the same version"), B, NOW) is Reason.EQUIVOCATION
    assert shelf.find(KEY, NOW) == (record(),)


def test_bounds_end_in_reasons() -> None:
    shelf = ValueShelf(MemoryStore().cells, CONFIG)
    assert [shelf.put(record(owner), A, NOW) for owner in range(3)] == [None, None, Reason.TOO_MANY]
    assert shelf.put(record(2, OTHER), A, NOW) is None
    assert shelf.put(record(3, OTHER), A, NOW) is Reason.QUOTA, "three for one giver"
    assert shelf.put(record(3, OTHER), B, NOW) is None
    third = record_key(b"test", b"third")
    assert shelf.put(record(0, third), B, NOW) is Reason.QUOTA, "four in all"
    assert shelf.put(record(0, version=1), B, NOW) is None, "a newer version needs no place"


def test_cells_that_cannot_be_read_are_told() -> None:
    store = MemoryStore()
    store.cells.put(SPACE, b"k", b"\xc1")
    with pytest.raises(StoreError, match="cannot be read"):
        ValueShelf(store.cells, CONFIG)
