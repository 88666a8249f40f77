"""Where blocks are kept: the newest of each hand, within bounds, over restarts, and as a file."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace
from tests.names.people import CONFIG, DAY, NOW, PLACE_A, PLACE_C, X, Z, person, place, zone_of

from linnet.core.errors import MalformedMessage, StoreError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.names.block_store import FILE_BYTES, RESOLVED_SPACE, SPACE, BlockShelf, ResolvedCache, make_file
from linnet.names.config import NamesConfig
from linnet.names.derivation import derive
from linnet.names.records import Block, Statement, seal_block
from linnet.names.zone import LONGEST
from linnet.store.memory import MemoryStore

ALICE = person("alice")
GIVER, OTHER = PeerId(b"g" * 32), PeerId(b"o" * 32)


def block_of(author: str, version: float = NOW, ends: float = NOW + DAY, label: str = "music") -> Block:
    """A block of this hand for Alice's label."""
    who = person(author)
    saying = Statement(label, int(version * 1000), int(ends), place(PLACE_C, Z))
    return seal_block(
        derive(ALICE.author, label), who.device, who.card, saying, Random(f"{author}{version}").randbytes
    )


def test_the_newest_of_one_hand_wins_and_older_ones_are_refused() -> None:
    store = MemoryStore()
    shelf = BlockShelf(store.cells, CONFIG)
    zone = zone_of("alice")
    old = zone.publish("music", place(PLACE_C, Z), DAY, NOW).block
    new = zone.publish("music", place(PLACE_A, X), DAY, NOW + 1).block
    assert shelf.find(old.lookup) == ()
    assert [shelf.put(each, GIVER, NOW + 2) for each in (old, new, new, old)] == [
        None,
        None,
        None,
        Reason.STALE,
    ]
    assert shelf.find(new.lookup) == (new,)
    assert BlockShelf(store.cells, CONFIG).find(new.lookup) == (new,)


def test_what_was_let_in_while_our_clock_was_ahead_gives_way() -> None:
    shelf = BlockShelf(MemoryStore().cells, CONFIG)
    ahead = NOW + 300 * DAY
    early, true = block_of("alice", version=ahead, ends=ahead + DAY), block_of("alice")
    assert shelf.put(early, GIVER, ahead) is None
    assert shelf.put(true, GIVER, NOW) is None
    assert shelf.find(true.lookup) == (true,)


def test_forged_ended_and_too_new_blocks_are_refused_with_a_reason() -> None:
    shelf = BlockShelf(MemoryStore().cells, CONFIG)
    good = block_of("alice")
    assert shelf.put(replace(good, version=good.version + 1), GIVER, NOW) is Reason.BAD_SIGNATURE
    assert shelf.put(good, GIVER, NOW + DAY) is Reason.STALE
    assert shelf.put(block_of("alice", version=NOW + 400), GIVER, NOW) is Reason.FUTURE_TIME
    assert shelf.put(block_of("alice", ends=NOW + LONGEST + 400), GIVER, NOW) is Reason.FUTURE_TIME
    assert len(shelf) == 0


def test_who_knows_the_name_cannot_drive_out_what_is_there() -> None:
    config = NamesConfig(candidates=3, giver_candidates=2)
    shelf = BlockShelf(MemoryStore().cells, config)
    mine = block_of("alice")
    assert shelf.put(mine, OTHER, NOW) is None
    squatters = [block_of(f"squatter {n}", version=NOW + 1) for n in range(3)]
    assert [shelf.put(each, GIVER, NOW) for each in squatters] == [None, None, Reason.TOO_MANY]
    assert shelf.put(squatters[2], OTHER, NOW) is Reason.TOO_MANY
    assert mine in shelf.find(mine.lookup)
    newer = block_of("alice", version=NOW + 2)
    assert shelf.put(newer, GIVER, NOW) is None, "a seat that one has is kept, whoever brings the block"
    assert shelf.put(squatters[2], None, NOW) is None, "what is our own always has room here"


def test_so_much_is_kept_for_one_peer_and_for_all() -> None:
    shelf = BlockShelf(MemoryStore().cells, NamesConfig(giver_records=2, records=3))
    blocks = [block_of("alice", label=f"label{n}") for n in range(5)]
    assert [shelf.put(each, GIVER, NOW) for each in blocks[:3]] == [None, None, Reason.QUOTA]
    assert [shelf.put(each, OTHER, NOW) for each in blocks[3:]] == [None, Reason.QUOTA]
    assert len(shelf) == 3
    assert shelf.sweep(NOW + DAY + CONFIG.grace) == 3
    later = [block_of("alice", NOW + 9 * DAY, NOW + 10 * DAY, f"label{n}") for n in range(2)]
    assert [shelf.put(each, GIVER, NOW + 9 * DAY) for each in later] == [None, None]


def test_what_has_ended_is_kept_for_a_while_so_that_it_can_be_said() -> None:
    store = MemoryStore()
    shelf = BlockShelf(store.cells, CONFIG)
    block = block_of("alice")
    shelf.put(block, GIVER, NOW)
    assert shelf.sweep(NOW + DAY + CONFIG.grace - 1) == 0
    assert shelf.find(block.lookup) == (block,)
    assert shelf.sweep(NOW + DAY + CONFIG.grace) == 1
    assert (shelf.find(block.lookup), len(shelf), list(store.cells.scan(SPACE))) == ((), 0, [])


def test_records_can_be_carried_in_a_file() -> None:
    shelf, other = BlockShelf(MemoryStore().cells, CONFIG), BlockShelf(MemoryStore().cells, CONFIG)
    blocks = [block_of("alice", label=label) for label in ("music", "tech")]
    ended = block_of("alice", ends=NOW + 5, label="ended")
    for block in (*blocks, ended):
        shelf.put(block, GIVER, NOW)
    assert other.take_file(make_file(shelf.records, NOW + 10), NOW + 10) == [None, None]
    assert [other.find(block.lookup) for block in blocks] == [(block,) for block in blocks]
    assert bytes(ALICE.author) not in make_file(shelf.records, NOW)
    assert b"music" not in make_file(shelf.records, NOW)


def test_a_file_is_foreign() -> None:
    shelf = BlockShelf(MemoryStore().cells, CONFIG)
    shelf.put(block_of("alice"), GIVER, NOW)
    data = make_file(shelf.records, NOW)
    other = BlockShelf(MemoryStore().cells, CONFIG)
    flipped = data[:-1] + bytes((data[-1] ^ 1,))
    assert other.take_file(flipped, NOW) == [Reason.BAD_SIGNATURE]
    for wrong in (
        b"",
        data[:-1],
        data.replace(b"records 1", b"records 2"),
        b"\xff" * 9,
        bytes(FILE_BYTES + 1),
    ):
        with pytest.raises(MalformedMessage):
            other.take_file(wrong, NOW)


def test_a_damaged_store_is_said_to_be_one() -> None:
    store = MemoryStore()
    store.cells.put(SPACE, b"k", b"?")
    with pytest.raises(StoreError):
        BlockShelf(store.cells, CONFIG)


ZONE = zone_of("alice")
BLOCKS = [ZONE.publish(label, place(PLACE_C, Z), DAY, NOW).block for label in ("a", "b", "c")]


def test_of_what_was_resolved_those_unused_for_longest_go_first() -> None:
    store = MemoryStore()
    memory = ResolvedCache(store.cells, 2)
    assert [memory.put(BLOCKS[n]) for n in (0, 1, 0, 2)] == [0, 0, 0, 1]
    assert [memory.find(each.lookup) for each in BLOCKS] == [BLOCKS[0], None, BLOCKS[2]]
    again = ResolvedCache(store.cells, 2)
    assert [again.find(each.lookup) for each in BLOCKS] == [BLOCKS[0], None, BLOCKS[2]]


def test_a_damaged_memory_of_what_was_resolved_is_said_to_be_one() -> None:
    store = MemoryStore()
    store.cells.put(RESOLVED_SPACE, b"k", b"?")
    with pytest.raises(StoreError):
        ResolvedCache(store.cells, 2)
