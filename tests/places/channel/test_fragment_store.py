"""The store of fragments on both engines: its keys, its counters, its cuts, and a naive model."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from linnet.core.errors import InvalidEvent
from linnet.core.ids import AuthorId, EventId, TopicId
from linnet.core.limits import LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.event.event import Spot, Tail, Verified
from linnet.event.signing import sign_unit
from linnet.places.channel.fragment_store import Conflict, Fragments, Mark, New, Row, Same, Stored
from linnet.places.multicast.fragmentation import (
    FRAGMENT,
    SEALED_BYTES,
    Change,
    Cut,
    Flag,
    Head,
    Standing,
    encode_head,
    head_of,
)
from linnet.store.base import CommittingStore
from linnet.store.memory import MemoryStore
from linnet.store.sqlite import SqliteStore
from linnet.testing.identities import known_identity

PLACE = TopicId(b"place..." * 4)
ELSEWHERE = TopicId(b"another." * 4)
ANN = AuthorId(b"ann." * 8)
FIRST, LAST, STATE, OPENING = Flag.FIRST, Flag.LAST, Flag.STATE, Flag.OPENING
WHOLE = FIRST | LAST


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CommittingStore]:
    engine: CommittingStore = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "s.db")
    yield engine
    engine.close()


def head(
    fragment: int,
    message: int,
    offset: int = 0,
    flags: int = WHOLE,
    *,
    term: int = 1,
    generation: int = 0,
    change: Change | None = None,
    cut: Cut | None = None,
) -> Head:
    opens = OPENING if fragment == 0 or cut is not None else 0
    return Head(term, fragment, message, offset, generation, flags | opens, change, cut)


def said(at: Head, body: bytes = b"x" * 10, *, by: str = "host", place: TopicId = PLACE) -> Verified:
    voice = known_identity(by)
    tail = Tail(None, None, None, None, FRAGMENT, None, 0, encode_head(at), body)
    seq = at.term * 2**32 + at.fragment % 2**32
    return sign_unit(voice.device, Spot(place, voice.author, voice.card.device, seq, None), [tail])


def fragments(store: CommittingStore, place: TopicId = PLACE) -> Fragments:
    return Fragments(place, store.log, store.cells)


def put(held: Fragments, at: Head, body: bytes = b"x" * 10, by: str = "host") -> Stored:
    return held.store(said(at, body, by=by, place=held.place), at, 0.0)


def numbers(rows: Iterable[Row]) -> list[int]:
    return [row.fragment for row in rows]


INTERLEAVED = [
    head(0, 1, 0, FIRST),
    head(1, 2),
    head(2, 1, 10, 0),
    head(3, 3, 0, FIRST | STATE),
    head(4, 1, 20, LAST),
    head(5, 3, 10, LAST | STATE),
]


def test_an_empty_place(store: CommittingStore) -> None:
    held = fragments(store)
    assert held.standing == Standing(-1, 0, 0, 0, 0, None)
    assert (held.upto, held.missing(9), held.get(0), held.get_at(1, 0)) == (0, [], None, None)
    assert (list(held.message(1)), held.pieces(1), held.is_whole(1)) == ([], [], False)


def test_a_fragment_is_found_by_each_of_its_keys(store: CommittingStore) -> None:
    held = fragments(store)
    units = [said(at, b"%010d" % at.fragment) for at in INTERLEAVED]
    outcomes = [held.store(unit, at, 1.0) for unit, at in zip(units, INTERLEAVED, strict=True)]
    assert [type(outcome) for outcome in outcomes] == [New] * 6
    assert [o.whole for o in outcomes if isinstance(o, New)] == [False, True, False, False, True, True]
    for looked_at in (held, fragments(store)):
        for at, unit in zip(INTERLEAVED, units, strict=True):
            row = looked_at.get(at.fragment)
            assert row is not None
            assert row == looked_at.get_at(at.message, at.offset)
            assert (row.term, row.message, row.offset, row.generation) == (1, at.message, at.offset, 0)
            assert (row.event, row.length, row.flags) == (unit.head, 10, at.flags)
            assert looked_at.unit(row) == unit.unit
            assert looked_at.verified(row) == unit
        assert numbers(looked_at.message(1)) == numbers(looked_at.pieces(1)) == [0, 2, 4]
        assert numbers(looked_at.message(3)) == [3, 5]
        assert looked_at.is_whole(3)
        assert looked_at.standing == Standing(5, 3, 0, 1, 3, units[5].head)
        assert (looked_at.upto, looked_at.missing(9)) == (6, [])


def test_a_duplicate_changes_nothing(store: CommittingStore) -> None:
    held = fragments(store)
    first = put(held, INTERLEAVED[0])
    again = put(held, INTERLEAVED[0])
    assert isinstance(first, New)
    assert again == Same(first.row)
    assert store.log.kept(PLACE).units == 1


def test_two_things_under_one_number_are_evident(store: CommittingStore) -> None:
    held = fragments(store)
    one, other = said(head(0, 1), b"one"), said(head(0, 1), b"other")
    held.store(one, head(0, 1), 0.0)
    assert held.store(other, head(0, 1), 0.0) == Conflict(Reason.EQUIVOCATION, other.head, one.head)
    twin = said(head(7, 1), b"twin")  # another number, but the same message and offset
    assert held.store(twin, head(7, 1), 0.0) == Conflict(Reason.EQUIVOCATION, twin.head, one.head)
    assert held.upto == 1
    assert store.log.get(other.head) is None


def test_a_number_of_another_term_or_device_is_no_equivocation(store: CommittingStore) -> None:
    held = fragments(store)
    one = said(head(0, 1))
    held.store(one, head(0, 1), 0.0)
    for at, by in ((head(0, 1, term=2), "host"), (head(0, 1), "co-host")):
        other = said(at, b"other", by=by)
        assert held.store(other, at, 0.0) == Conflict(Reason.IN_USE, other.head, one.head)


@pytest.mark.parametrize(
    ("at", "body"),
    [
        (head(9, 1, 5, 0), b"x"),  # inside of a piece
        (head(9, 1, 25, 0), b"x" * 10),  # into the next piece
        (head(9, 1, 45, 0), b"x"),  # behind the last
        (head(9, 1, 20, 0), b""),  # nothing
        (head(9, 1, 20, LAST), b"x"),  # another last
        (head(9, 2, 10, LAST), b"x"),  # a message that is whole
        (head(9, 3, 5, LAST), b""),  # ends before what it has
    ],
)
def test_pieces_of_a_message_do_not_overlap(store: CommittingStore, at: Head, body: bytes) -> None:
    held = fragments(store)
    for known in (head(0, 1, 0, FIRST), head(1, 1, 30, LAST), head(2, 2), head(3, 3, 10, 0)):
        put(held, known)
    outcome = put(held, at, body)
    assert isinstance(outcome, Conflict)
    assert outcome.reason is Reason.MALFORMED
    assert held.standing.fragment == 3


def test_messages_without_a_body_and_with_an_empty_end(store: CommittingStore) -> None:
    held = fragments(store)
    assert put(held, head(0, 1), b"") == New(held.get(0), True)  # type: ignore[arg-type]
    put(held, head(1, 2, 10, LAST), b"")
    assert numbers(held.pieces(2)) == [1]
    assert isinstance(put(held, head(2, 2, 0, FIRST)), New)
    assert held.is_whole(2)
    assert numbers(held.message(2)) == numbers(held.pieces(2)) == [2, 1]


def test_pieces_behind_a_gap_are_listed(store: CommittingStore) -> None:
    held = fragments(store)
    for at in (head(1, 1, 20, LAST), head(2, 1, 0, FIRST)):
        put(held, at)
    for looked_at in (held, fragments(store)):
        assert numbers(looked_at.message(1)) == [2]
        assert numbers(looked_at.pieces(1)) == [2, 1]
        assert not looked_at.is_whole(1)


def test_gaps(store: CommittingStore) -> None:
    held = fragments(store)
    for number in (0, 1, 4, 7, 8):
        put(held, head(number, number + 1))
    for looked_at in (held, fragments(store)):
        assert looked_at.upto == 2
        assert looked_at.missing(9) == [(2, 3), (5, 6)]
        assert looked_at.missing(1) == [(2, 3)]
    assert held.pass_over(2, 3)
    assert held.pass_over(3, 2)
    assert (held.upto, held.missing(9), held.get(2)) == (5, [(5, 6)], None)
    assert fragments(store).upto == 5
    assert isinstance(put(held, head(2, 3)), New)  # it may still come


def test_the_largest_numbers(store: CommittingStore) -> None:
    held = fragments(store)
    for fragment in (LARGEST_COUNT, LARGEST_COUNT - 1, 2**32, 255, 256):
        put(held, head(fragment, fragment, term=LARGEST_COUNT >> 33, generation=LARGEST_COUNT))
    again = fragments(store)
    assert again.standing.fragment == again.standing.message == LARGEST_COUNT
    assert again.missing(9) == [(0, 254), (257, 2**32 - 1), (2**32 + 1, LARGEST_COUNT - 2)]
    row = again.get(LARGEST_COUNT)
    assert row is not None
    assert (row.message, row.generation, row.next_generation) == (LARGEST_COUNT,) * 2 + (LARGEST_COUNT,)


def test_places_are_apart(store: CommittingStore) -> None:
    here, there = fragments(store), fragments(store, ELSEWHERE)
    put(here, head(0, 1), b"here")
    assert (there.get(0), there.upto, there.standing) == (None, 0, Standing())
    assert isinstance(put(there, head(0, 1), b"there"), New)
    assert here.get(0) != there.get(0)
    put(here, head(1, 2, 0, FIRST))  # The beginning of a message, whose rest is missing here alone.
    assert isinstance(put(there, head(1, 2)), New)
    assert (here.is_whole(2), there.is_whole(2)) == (False, True)
    put(here, head(2, 3))
    assert [fragments(store, place).standing.message for place in (PLACE, ELSEWHERE)] == [3, 2]
    with pytest.raises(InvalidEvent):
        here.store(said(head(1, 2), place=ELSEWHERE), head(1, 2), 0.0)


def test_a_generation_ends_with_a_removal(store: CommittingStore) -> None:
    held = fragments(store)
    put(held, head(0, 1, generation=3, change=Change(ANN, True, 1)))
    assert held.standing.generation == 3
    put(held, head(1, 2, generation=3, change=Change(ANN, False, 0)))
    assert held.standing.generation == fragments(store).standing.generation == 4


def test_what_encryption_adds_is_no_part_of_the_message(store: CommittingStore) -> None:
    held = fragments(store)
    for at in (head(0, 1, 0, FIRST | Flag.SEALED), head(1, 1, 10, LAST | Flag.SEALED)):
        held.store(said(at, b"x" * (10 + SEALED_BYTES)), at, 0.0)
    assert held.is_whole(1)
    at = head(2, 2, flags=WHOLE | Flag.SEALED)
    short = said(at, b"abc")
    assert held.store(short, at, 0.0) == Conflict(Reason.MALFORMED, short.head)


def test_a_cut_takes_the_rest_of_a_term_out_of_the_line(store: CommittingStore) -> None:
    held = fragments(store)
    for at in INTERLEAVED:
        put(held, at)
    before = held.get(2)
    assert before is not None
    assert numbers(held.orphan(2, 1)) == [3, 4, 5]
    for looked_at in (held, fragments(store)):
        assert looked_at.standing == Standing(2, 2, 0, 1, 0, before.event)
        assert (looked_at.upto, looked_at.get(3), looked_at.get_at(3, 0)) == (3, None, None)
        assert numbers(looked_at.pieces(1)) == [0, 2]
        assert not looked_at.is_whole(1)
        assert looked_at.is_whole(2)
        assert numbers(looked_at.orphans()) == [3, 4, 5]
        assert looked_at.state.lowest is None
    opening = head(3, 3, term=2, cut=Cut(1, 2, 2, before.event))
    assert isinstance(put(held, opening, by="co-host"), New)
    assert held.standing.term == 2
    orphan = held.orphans()[0]
    assert held.verified(orphan) == said(INTERLEAVED[3])  # the log has it still
    held.forget_orphan(orphan)
    assert numbers(fragments(store).orphans()) == [4, 5]


def test_a_cut_leaves_what_came_of_the_next_term(store: CommittingStore) -> None:
    held = fragments(store)
    for number in range(4):
        put(held, head(number, number + 1))
    put(held, head(6, 7, term=2))
    assert numbers(held.orphan(1, 1)) == [2, 3]
    assert (held.upto, held.missing(9), held.standing.fragment) == (2, [(2, 5)], 6)


def test_orphans_come_back_when_another_opening_counts(store: CommittingStore) -> None:
    held = fragments(store)
    for at in INTERLEAVED:
        put(held, at)
    standing = held.standing
    for orphan in held.orphan(1, 1):
        verified = held.verified(orphan)
        assert verified is not None
        held.forget_orphan(orphan)
        assert isinstance(held.store(verified, INTERLEAVED[orphan.fragment], 0.0), New)
    assert held.orphans() == []
    for looked_at in (held, fragments(store)):
        assert looked_at.standing == standing
        assert looked_at.is_whole(1)
        assert numbers(looked_at.message(1)) == [0, 2, 4]
        row = looked_at.get(4)
        assert row is not None
        assert looked_at.verified(row) == said(INTERLEAVED[4])


def test_marks_of_state(store: CommittingStore) -> None:
    held = fragments(store)
    for number in range(5):
        put(held, head(number, number + 1, flags=WHOLE | STATE))
    held.mark(1, Mark.APPLIED)
    held.mark(3, Mark.APPLIED | Mark.HASH)
    held.mark(4, Mark.APPLIED)
    for looked_at in (held, fragments(store)):
        assert looked_at.state.base == 3
        row = looked_at.get_at(3, 0)
        assert row is not None
        assert row.marks == Mark.APPLIED | Mark.HASH
    held.orphan(3, 1)
    assert held.standing.state == 4


CHAIN_OF_MESSAGES = [
    head(
        number,
        1 + number // 3 if number % 3 != 1 else 10 + number // 3,
        (0, 0, 4)[number % 3],
        (FIRST, WHOLE, LAST)[number % 3],
    )
    for number in range(12)
]
"""Four messages in two pieces each, with a small one between the pieces of each."""


def test_the_last_change_of_state_before_a_cut_is_found_also_where_the_index_forgot_it(
    store: CommittingStore,
) -> None:
    held = fragments(store)
    for number in range(6):
        changes = number in (1, 2, 4)
        put(held, head(number, number + 1, flags=WHOLE | (STATE if changes else 0)))
    for message in (2, 3, 5):
        # As version 0.1.0 left it: nothing was known before the last hash.
        store.cells.delete(f"place state index {PLACE.hex()}", message.to_bytes(8, "big"))
    held = fragments(store)
    held.orphan(3, 9)
    assert held.standing.state == 3
    held.orphan(1, 9)
    assert held.standing.state == 2
    held.orphan(0, 9)
    assert held.standing.state == 0


class AgainstTheModel(RuleBasedStateMachine):
    """Both engines beside a dict of what was stored, in any order, with cuts and restarts."""

    @initialize()
    def begin(self) -> None:
        self.dir = tempfile.TemporaryDirectory()
        self.stores: list[CommittingStore] = [MemoryStore(), SqliteStore(Path(self.dir.name) / "s.db")]
        self.held = [fragments(store) for store in self.stores]
        self.model: dict[int, tuple[Head, EventId]] = {}
        self.term = 1

    @rule(index=st.integers(0, 11), variant=st.sampled_from([b"aaaa", b"bbbb"]))
    def arrive(self, index: int, variant: bytes) -> None:
        at = CHAIN_OF_MESSAGES[index]
        at = Head(self.term, at.fragment, at.message, at.offset, at.generation, at.flags)
        unit = said(at, variant)
        known = self.model.get(index)
        for held in self.held:
            outcome = held.store(unit, at, 0.0)
            if known is None:
                assert isinstance(outcome, New)
            elif known[1] == unit.head:
                assert isinstance(outcome, Same)
            else:
                reason = Reason.EQUIVOCATION if known[0].term == at.term else Reason.IN_USE
                assert outcome == Conflict(reason, unit.head, known[1])
        self.model.setdefault(index, (at, unit.head))

    @rule(after=st.integers(0, 11))
    def cut(self, after: int) -> None:
        gone = sorted(number for number in self.model if number > after)
        for held in self.held:
            assert numbers(held.orphan(after, self.term)) == gone
        self.model = {number: known for number, known in self.model.items() if number <= after}
        self.term += 1

    @rule()
    def restart(self) -> None:
        self.held = [fragments(store) for store in self.stores]

    @invariant()
    def the_line_agrees(self) -> None:
        top = max(self.model, default=-1)
        upto = next(number for number in range(13) if number not in self.model)
        for held in self.held:
            assert held.upto == upto
            holes = [n for first, last in held.missing(99) for n in range(first, last + 1)]
            assert holes == [number for number in range(top + 1) if number not in self.model]
            assert held.standing.fragment == top
            for number in range(12):
                row = held.get(number)
                assert (None if row is None else row.event) == self.model.get(number, (None, None))[1]
            for message in (1, 2, 3, 4, 10, 11, 12, 13):
                mine = [
                    (at.offset, number) for number, (at, _) in self.model.items() if at.message == message
                ]
                assert numbers(held.pieces(message)) == [number for _, number in sorted(mine)]
                assert held.is_whole(message) is (len(mine) == (2 if message < 10 else 1))

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        self.dir.cleanup()


TestAgainstTheModel = AgainstTheModel.TestCase
TestAgainstTheModel.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)


def test_heads_of_these_tests_are_heads() -> None:
    for at in (*INTERLEAVED, *CHAIN_OF_MESSAGES):
        assert head_of(said(at).events[0]) == at
