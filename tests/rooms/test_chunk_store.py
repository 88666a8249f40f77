"""Pieces that are kept: within their bytes, own ones before copies, over restarts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Effect, Outbox
from linnet.rooms.attachments import Piece, piece_of
from linnet.rooms.chunk_store import LEAST_BYTES, ChunkStore
from linnet.sim.nemesis.open_node import DamageableStore
from linnet.trace.records import Kind, Record

ROOM, OTHER = TopicId(b"r" * 32), TopicId(b"s" * 32)
KEPT: tuple[bool, list[Record]] = (True, [])
EVICTED = Record(Kind.EVICTED, ROOM, bytes=LEAST_BYTES, reason=Reason.QUOTA, note="a fetched piece")


def piece(number: int, size: int = LEAST_BYTES) -> Piece:
    return piece_of(bytes([number]) * size)


def full(size: int = LEAST_BYTES) -> tuple[bool, list[Record]]:
    return False, [Record(Kind.DROPPED, ROOM, bytes=size, reason=Reason.QUOTA, note="no room for a piece")]


class Shelf:
    """A store of pieces with room for three, which can be closed and opened again."""

    def __init__(self, most: int = 3 * LEAST_BYTES) -> None:
        self.most = most
        self.cells = DamageableStore().cells
        self.restart()

    def restart(self) -> None:
        self.out = Outbox()
        self.store = ChunkStore(ROOM, self.cells, self.most, self.out)

    def keep(self, kept: Piece, own: bool, now: float = 1.0) -> tuple[bool, list[Effect]]:
        is_kept = self.store.keep(kept.digest, kept.data, own, now)
        return is_kept, self.out.take()


def test_what_is_kept_is_there_after_a_restart() -> None:
    shelf = Shelf()
    assert shelf.keep(piece(1), own=True) == KEPT
    assert shelf.keep(piece(2, size=10), own=False) == KEPT
    for _ in range(2):
        assert shelf.store.get(piece(1).digest) == piece(1).data
        assert shelf.store.get(piece(2, size=10).digest) == piece(2, size=10).data
        assert shelf.store.get(piece(3).digest) is None
        assert (len(shelf.store._held), shelf.store.bytes) == (2, 2 * LEAST_BYTES)
        assert shelf.store.offered == [piece(1).digest]
        shelf.restart()


def test_rooms_do_not_share_pieces() -> None:
    shelf = Shelf()
    shelf.keep(piece(1), own=True)
    elsewhere = ChunkStore(OTHER, shelf.cells, 100_000, Outbox())
    assert elsewhere.get(piece(1).digest) is None
    assert (piece(1).digest in elsewhere, elsewhere.bytes) == (False, 0)


def test_own_pieces_fill_the_room_to_the_last_byte_and_no_further() -> None:
    shelf = Shelf(3 * LEAST_BYTES + 1)
    for number in range(2):
        assert shelf.keep(piece(number), own=True) == KEPT
    assert shelf.keep(piece(2, LEAST_BYTES + 2), own=True) == full(LEAST_BYTES + 2)
    assert shelf.keep(piece(2, LEAST_BYTES + 1), own=True) == KEPT
    assert shelf.keep(piece(3, 1), own=True) == full(1)
    assert shelf.store.bytes == shelf.most


def test_a_piece_that_is_kept_already_needs_no_room() -> None:
    shelf = Shelf(LEAST_BYTES)
    assert shelf.keep(piece(1), own=False) == KEPT
    assert shelf.store.offered == []
    assert shelf.keep(piece(1), own=True) == KEPT
    shelf.restart()
    assert shelf.store.offered == [piece(1).digest]
    assert shelf.keep(piece(2), own=False) == full()


def test_the_oldest_copies_give_way() -> None:
    shelf = Shelf()
    shelf.keep(piece(1), own=True, now=1.0)
    shelf.keep(piece(3), own=False, now=2.0)
    shelf.keep(piece(2), own=False, now=3.0)
    shelf.restart()
    assert shelf.keep(piece(4), own=True, now=4.0) == (True, [EVICTED])
    assert [number for number in range(1, 5) if piece(number).digest in shelf.store] == [1, 2, 4]
    assert shelf.store.get(piece(3).digest) is None
    assert shelf.keep(piece(5), own=False, now=5.0) == (True, [EVICTED])
    assert [number for number in range(1, 6) if piece(number).digest in shelf.store] == [1, 4, 5]


def test_nothing_gives_way_if_that_would_not_do() -> None:
    shelf = Shelf()
    shelf.keep(piece(1), own=True)
    shelf.keep(piece(2), own=True)
    shelf.keep(piece(3), own=False)
    large = piece(4, 2 * LEAST_BYTES)
    assert shelf.keep(large, own=True) == full(2 * LEAST_BYTES)
    assert piece(3).digest in shelf.store


def test_a_piece_that_a_relay_has_is_not_offered_again() -> None:
    shelf = Shelf()
    shelf.keep(piece(1), own=True)
    shelf.store.settle(piece(1).digest)
    shelf.store.settle(piece(9).digest)
    shelf.restart()
    assert shelf.store.offered == []


@given(st.lists(st.tuples(st.integers(0, 12), st.booleans(), st.integers(1, 9000)), max_size=30))
def test_the_bytes_never_pass_the_bound_and_own_pieces_stay(moves: list[tuple[int, bool, int]]) -> None:
    shelf = Shelf(5 * LEAST_BYTES)
    own: dict[bytes, None] = {}
    for now, (number, mine, size) in enumerate(moves):
        each = piece(number, size)
        kept, _ = shelf.keep(each, mine, float(now))
        if kept and mine:
            own[each.digest] = None
        held = [digest for digest in shelf.store._held if shelf.store.get(digest) is None]
        assert held == []
        assert shelf.store.bytes <= shelf.most
        assert all(digest in shelf.store for digest in own)
    before = shelf.store.bytes
    shelf.restart()
    assert shelf.store.bytes == before


def test_a_damaged_piece_is_held_no_more_and_can_be_kept_again() -> None:
    shelf = Shelf()
    shelf.keep(piece(1), own=False)
    shelf.cells.spoil("piece", ROOM + piece(1).digest)
    assert shelf.store.get(piece(1).digest) is None
    lost = Record(Kind.DROPPED, ROOM, bytes=LEAST_BYTES, reason=Reason.DAMAGED, note="a fetched piece")
    assert shelf.out.take() == [lost]
    assert (piece(1).digest in shelf.store, shelf.store.bytes) == (False, 0)
    assert shelf.keep(piece(1), own=False) == KEPT
    assert shelf.store.get(piece(1).digest) == piece(1).data
