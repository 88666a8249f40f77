"""The membership test: its timeline examples, what is settled beyond them, and a naive model."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.raised import reason_of

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, TopicId
from linnet.core.limits import LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.places.channel.membership import Known, Membership, Roll, Verdict, in_force, packing, read_lines
from linnet.places.deed import Policy
from linnet.places.multicast.fragmentation import Change
from linnet.store.base import CommittingStore
from linnet.store.memory import MemoryStore
from linnet.store.sqlite import SqliteStore

PLACE = TopicId(b"place..." * 4)
ELSEWHERE = TopicId(b"another." * 4)
ANN, BEN, CAT = (AuthorId(name * 8) for name in (b"ann.", b"ben.", b"cat."))
YES, NO, UNKNOWN = Verdict.YES, Verdict.NO, Verdict.UNKNOWN

JOIN = Known(10, 10, 0, True)
PART = Known(20, 0, 0, False)
AGAIN = Known(30, 30, 1, True)
AGAIN_ALL = Known(30, 0, 1, True)

TIMELINE = [
    ((JOIN,), 0, {(9, 0): NO, (10, 0): YES, (25, 0): YES, (25, 1): UNKNOWN}),
    ((JOIN, PART), 1, {(9, 0): NO, (15, 0): NO, (20, 0): NO, (25, 1): NO}),
    ((JOIN, PART, AGAIN), 1, {(15, 0): NO, (29, 1): NO, (30, 1): YES}),
    ((JOIN, PART, AGAIN_ALL), 1, {(15, 0): YES, (25, 1): YES}),
]
"""Changes, the generation that they make known, and what is answered for (message, generation)."""


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CommittingStore]:
    engine: CommittingStore = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "s.db")
    yield engine
    engine.close()


def membership(store: CommittingStore, policy: Policy = Policy.PRIVATE) -> Membership:
    return Membership(PLACE, store.cells, policy)


def put(members: Membership, nym: AuthorId, known: Known) -> bool:
    change = Change(nym, known.joins, known.effective_since)
    return members.store(change, known.announced_at, known.generation)


@pytest.mark.parametrize(("changes", "generation", "answers"), TIMELINE)
def test_the_timeline(
    store: CommittingStore,
    changes: tuple[Known, ...],
    generation: int,
    answers: dict[tuple[int, int], Verdict],
) -> None:
    members = membership(store)
    for change in changes:
        assert put(members, ANN, change)
    assert members.known_generation == generation
    for looked_at in (members, membership(store)):
        assert {at: looked_at.test(ANN, *at) for at in answers} == answers
    assert {at: plain_test(list(changes), generation, *at) for at in answers} == answers


@pytest.mark.parametrize(("changes", "generation", "answers"), TIMELINE)
def test_the_order_of_arrival_does_not_matter(
    store: CommittingStore,
    changes: tuple[Known, ...],
    generation: int,
    answers: dict[tuple[int, int], Verdict],
) -> None:
    members = membership(store)
    for change in reversed(changes):
        put(members, ANN, change)
    assert members.changes(ANN) == list(changes)
    assert {at: members.test(ANN, *at) for at in answers} == answers


def test_a_kick_cuts_what_is_under_way(store: CommittingStore) -> None:
    """Message 40 began in generation 3; the notice is message 41; the rest of 40 is of generation 4."""
    members = membership(store)
    members.learn(Roll(), 5, 3)
    put(members, ANN, Known(10, 10, 3, True))
    put(members, BEN, Known(11, 11, 3, True))
    sent = [(40, 3), (40, 3), (41, 3), (40, 4)]
    assert [members.test(ANN, *at) for at in sent] == [YES, YES, YES, UNKNOWN]
    put(members, ANN, Known(41, 0, 3, False))
    assert members.test(ANN, 40, 4) is NO
    assert members.test(BEN, 40, 4) is YES


def test_the_notice_of_its_own_removal_may_be_replayed(store: CommittingStore) -> None:
    members = membership(store)
    for change in (JOIN, PART):
        put(members, ANN, change)
    put(members, BEN, Known(5, 5, 0, True))
    assert members.test(ANN, 20, 0) is NO
    assert members.test(ANN, 20, 0, replay=True) is YES
    for message, generation in ((19, 0), (21, 0), (20, 1), (10, 0)):
        assert members.test(ANN, message, generation, replay=True) is NO
    assert members.test(CAT, 20, 0, replay=True) is NO
    assert members.test(BEN, 20, 0, replay=True) is YES


@pytest.mark.parametrize("change", [Change(ANN, True, 11), Change(ANN, False, 1)])
def test_what_breaks_the_rules_is_refused(store: CommittingStore, change: Change) -> None:
    members = membership(store)
    assert reason_of(RemoteError, members.store, change, 10, 0) is Reason.MALFORMED
    assert members.changes(ANN) == membership(store).changes(ANN) == []


def test_a_grant_may_reach_back_in_part(store: CommittingStore) -> None:
    members = membership(store, Policy.CLOSED)
    assert put(members, ANN, Known(10, 4, 0, True))
    assert [members.test(ANN, message, 0) for message in (3, 4, 10)] == [NO, YES, YES]


def test_a_change_counts_once_and_cannot_be_contradicted(store: CommittingStore) -> None:
    members = membership(store)
    assert put(members, ANN, JOIN)
    assert not put(members, ANN, JOIN)
    assert reason_of(RemoteError, put, members, ANN, JOIN._replace(effective_since=0)) is Reason.EQUIVOCATION
    assert members.changes(ANN) == [JOIN]


def test_a_removal_that_was_missed_holds_back_what_was_sent_behind_it(store: CommittingStore) -> None:
    members = membership(store)
    put(members, ANN, Known(1, 1, 0, True))
    put(members, BEN, Known(2, 2, 0, True))
    put(members, CAT, Known(9, 0, 1, False))
    assert members.known_generation == 0
    assert members.test(ANN, 10, 2) is UNKNOWN
    put(members, ANN, Known(8, 0, 0, False))
    assert members.known_generation == membership(store).known_generation == 2
    assert [members.test(nym, 10, 2) for nym in (ANN, BEN)] == [NO, YES]


def test_fragments_do_not_make_a_generation_known(store: CommittingStore) -> None:
    """A join of a later generation says that somebody left, not who."""
    members = membership(store)
    put(members, ANN, Known(30, 30, 1, True))
    assert members.test(ANN, 30, 1) is UNKNOWN


def test_a_newcomer_knows_what_was_told(store: CommittingStore) -> None:
    old = Membership(PLACE, MemoryStore().cells, Policy.CLOSED)
    put(old, ANN, Known(1, 0, 0, True))
    put(old, BEN, Known(2, 0, 0, True))
    put(old, BEN, Known(3, 0, 0, False))
    put(old, CAT, Known(4, 0, 1, True))
    members = membership(store, Policy.CLOSED)
    members.learn(read_lines(old.lines()), old.newest, 1)
    assert not put(members, BEN, Known(2, 0, 0, True))  # from history; its part may come much later
    for known in (members, membership(store, Policy.CLOSED)):
        assert (known.known_generation, known.newest, known.since, known.is_whole) == (1, 4, 4, True)
        assert [known.test(nym, 4, 1) for nym in (ANN, BEN, CAT)] == [YES, NO, YES]
        assert sorted(known.present()) == sorted([ANN, CAT])
        assert known.digest() == old.digest()


def test_until_the_roll_is_known_nobody_is_told_no_who_may_be_a_guest(store: CommittingStore) -> None:
    members = membership(store)
    put(members, BEN, Known(5, 5, 0, True))  # of former times
    members.enter(Change(ANN, True, 10), 10, 2)
    put(members, CAT, Known(11, 11, 2, True))
    for known in (members, membership(store)):
        assert not known.is_whole
        assert [known.test(nym, 12, 2) for nym in (ANN, BEN, CAT)] == [YES, UNKNOWN, YES]
        assert known.test(CAT, 10, 2) is UNKNOWN
    roll = Roll()
    roll.set(ANN, packing.pack(10, 10, 2, True))
    members.learn(roll, 10, 2)
    for known in (members, membership(store)):
        assert known.is_whole
        assert [known.test(nym, 12, 2) for nym in (ANN, BEN, CAT)] == [YES, NO, YES]
        assert known.test(CAT, 10, 2) is NO


def test_a_roll_of_a_later_message_than_it_says_is_refused(store: CommittingStore) -> None:
    members = membership(store)
    roll = Roll()
    roll.set(ANN, packing.pack(10, 10, 0, True))
    assert reason_of(RemoteError, members.learn, roll, 9, 0) is Reason.MALFORMED
    assert members.present() == []


def test_what_a_cut_takes_from_a_roll_is_not_known(store: CommittingStore) -> None:
    """A part in the roll had covered a join, which is there again now: nobody here can tell."""
    roll = Roll()
    roll.set(ANN, packing.pack(4, 4, 0, True))
    roll.set(CAT, packing.pack(9, 9, 1, True))
    members = membership(store)
    members.learn(roll, 9, 1)
    members.undo(6)
    for known in (members, membership(store)):
        assert (known.is_whole, known.known_generation, known.newest) == (False, 0, 6)
        assert [known.test(nym, 10, 0) for nym in (ANN, BEN, CAT)] == [YES, UNKNOWN, UNKNOWN]
        assert known.test(ANN, 10, 1) is UNKNOWN


CHANGES = st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 12)), max_size=24)


@given(CHANGES, st.integers(0, 24))
def test_whoever_learned_a_roll_judges_as_whoever_was_always_there(
    course: list[tuple[int, bool, int]], at: int
) -> None:
    """The voice says one change after the other; somebody comes in behind any of them."""
    always = Membership(PLACE, MemoryStore().cells, Policy.PRIVATE)
    later = Membership(PLACE, MemoryStore().cells, Policy.PRIVATE)
    generation = 0
    for number, (who, joins, back) in enumerate(course, 1):
        change = Change((ANN, BEN, CAT)[who], joins, max(0, number - back) if joins else 0)
        for members in (always, later):
            members.store(change, number, generation)
        generation += not joins
        if number == at:
            later.learn(read_lines(always.lines()), number, generation)
    assert later.digest() == always.digest()
    assert later.known_generation == always.known_generation == generation
    for nym in (ANN, BEN, CAT):
        for message in range(len(course) + 2):
            for seen in range(generation + 2):
                assert later.test(nym, message, seen) is always.test(nym, message, seen)


def test_in_force_is_what_still_decides_something() -> None:
    assert in_force((JOIN, PART)) == []
    assert in_force((JOIN, PART, AGAIN)) == [AGAIN]
    assert in_force((JOIN, AGAIN_ALL)) == [AGAIN_ALL]
    assert in_force((JOIN, AGAIN)) == [JOIN, AGAIN]
    assert in_force(()) == []


def test_what_matters_is_what_is_in_force(store: CommittingStore) -> None:
    members = membership(store)
    for change in (JOIN, PART, AGAIN):
        put(members, ANN, change)
    assert [members.matters(ANN, at) for at in (10, 20, 30, 31)] == [False, False, True, False]
    assert not members.matters(BEN, 30)


def test_undo_takes_back_what_a_cut_term_announced(store: CommittingStore) -> None:
    members = membership(store)
    for change in (JOIN, PART, AGAIN):
        put(members, ANN, change)
    put(members, BEN, Known(25, 25, 1, True))
    assert members.undo(19) == [(ANN, PART), (BEN, Known(25, 25, 1, True)), (ANN, AGAIN)]
    for known in (members, membership(store)):
        assert (known.present(), known.guests, known.known_generation) == ([ANN], 1, 0)
        assert known.changes(ANN) == [JOIN]
        assert known.changes(BEN) == []
    assert put(members, ANN, PART)


def test_an_anonymous_place_is_open(store: CommittingStore) -> None:
    members = membership(store, Policy.ANONYMOUS)
    assert members.test(ANN, 0, LARGEST_COUNT) is YES
    assert members.present() == []


def test_places_are_apart(store: CommittingStore) -> None:
    put(membership(store), ANN, JOIN)
    other = Membership(ELSEWHERE, store.cells, Policy.PRIVATE)
    assert (other.changes(ANN), other.guests) == ([], 0)


def test_the_largest_numbers(store: CommittingStore) -> None:
    members = membership(store)
    members.learn(Roll(), 0, LARGEST_COUNT)
    for announced in (LARGEST_COUNT, LARGEST_COUNT - 1):
        put(members, ANN, Known(announced, announced, LARGEST_COUNT, True))
    assert [change.announced_at for change in membership(store).changes(ANN)] == [
        LARGEST_COUNT - 1,
        LARGEST_COUNT,
    ]
    assert members.test(ANN, LARGEST_COUNT, LARGEST_COUNT) is YES
    assert members.test(ANN, LARGEST_COUNT - 2, LARGEST_COUNT) is NO


NYMS = st.sampled_from([ANN, BEN, CAT])
MESSAGES = st.integers(1, 12)
GENERATIONS = st.integers(0, 3)


class AgainstTheModel(RuleBasedStateMachine):
    """The class over both engines beside a dict of changes that is asked the plain way."""

    @initialize()
    def begin(self) -> None:
        self.dir = tempfile.TemporaryDirectory()
        self.stores: list[CommittingStore] = [MemoryStore(), SqliteStore(Path(self.dir.name) / "s.db")]
        self.members = [membership(store) for store in self.stores]
        self.model: dict[tuple[AuthorId, int], Known] = {}

    @rule(nym=NYMS, announced=MESSAGES, back=st.integers(0, 12), generation=GENERATIONS, joins=st.booleans())
    def change(self, nym: AuthorId, announced: int, back: int, generation: int, joins: bool) -> None:
        known = Known(announced, max(0, announced - back) if joins else 0, generation, joins)
        held = self.model.get((nym, announced))
        for members in self.members:
            if held is not None and held != known:
                with pytest.raises(RemoteError):
                    put(members, nym, known)
            else:
                assert put(members, nym, known) is (held is None)
        self.model.setdefault((nym, announced), known)

    @rule(after=MESSAGES)
    def undo(self, after: int) -> None:
        undone = sorted(key[::-1] for key in self.model if key[1] > after)
        for members in self.members:
            found = members.undo(after)
            assert sorted((known.announced_at, nym) for nym, known in found) == undone
        self.model = {key: known for key, known in self.model.items() if key[1] <= after}

    @rule()
    def restart(self) -> None:
        self.members = [membership(store) for store in self.stores]

    @invariant()
    def answers_agree(self) -> None:
        parts = {known.generation for known in self.model.values() if not known.joins}
        known_generation = next(number for number in range(6) if number not in parts)
        for members in self.members:
            assert members.known_generation == known_generation
            for nym in (ANN, BEN, CAT):
                mine = [known for key, known in self.model.items() if key[0] == nym]
                told = [known for known in sorted(mine) if members.matters(nym, known.announced_at)]
                for message in range(13):
                    for generation in (0, known_generation, known_generation + 1):
                        expected = plain_test(mine, known_generation, message, generation)
                        assert members.test(nym, message, generation) is expected
                        assert plain_test(told, known_generation, message, generation) is expected

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        self.dir.cleanup()


def plain_test(changes: list[Known], known_generation: int, message: int, generation: int) -> Verdict:
    if generation > known_generation:
        return UNKNOWN
    effective = [change for change in changes if change.effective_since <= message]
    return YES if effective and max(effective).joins else NO


TestAgainstTheModel = AgainstTheModel.TestCase
TestAgainstTheModel.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
