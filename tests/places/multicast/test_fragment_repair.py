"""Gaps are found by number and asked for one by one, of one member after the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.raised import reason_of

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.places.config import PlacesConfig
from linnet.places.messages import Code, Replay
from linnet.places.multicast.fragment_repair import RANGES, WANTED, FragmentRepair, Gap, Gaps
from linnet.places.multicast.fragmentation import Flag, Head
from linnet.trace.records import Record

PLACE = TopicId(b"t" * 32)
ANNA, BOB, CARL = (PeerId(letter * 32) for letter in (b"a", b"b", b"c"))
CONFIG = PlacesConfig(gap_delay=1.0, replay_timeout=2.0, replay_tries=3, replays_at_once=4)


def head(number: int, message: int = 0, offset: int = 0) -> Head:
    first = int(Flag.FIRST) if not offset else 0
    return Head(1, number, message or number + 1, offset, 0, first | int(Flag.LAST))


class Question(NamedTuple):
    """With the type of its message."""

    peer: PeerId
    message: Replay


class Due(NamedTuple):
    questions: list[Question]
    records: list[Record]


class Lacking(FragmentRepair):
    """What one node lacks, and its outbox, which gets nothing but records."""

    def __init__(
        self, config: PlacesConfig = CONFIG, upto: int = 0, gaps: Iterable[tuple[int, int]] = ()
    ) -> None:
        self.out = Outbox()
        super().__init__(PLACE, config, self.out, upto, gaps)

    def due(self, now: float) -> Due:
        found = Due([], [])
        for peer, message in self.take_due(now):
            assert isinstance(message, Replay)
            found.questions.append(Question(peer, message))
        for effect in self.out.take():
            assert isinstance(effect, Record)
            found.records.append(effect)
        return found

    def answered(self, peer: PeerId, request: int, code: Code, now: float) -> Record | None:
        """What is recorded of an answer."""
        self.handle_answer(peer, request, code, now)
        effects = self.out.take()
        if not effects:
            return None
        (record,) = effects
        assert isinstance(record, Record)
        return record


def missing(*peers: PeerId, config: PlacesConfig = CONFIG) -> Lacking:
    found = Lacking(config)
    for peer in peers:
        found.connect(peer, 0.0)
    return found


def number(request: int, peer: PeerId, fragment: int) -> Question:
    return Question(peer, Replay(PLACE, request, fragment, 0, 0, 0))


def piece(request: int, peer: PeerId, message: int, offset: int) -> Question:
    return Question(peer, Replay(PLACE, request, None, message, offset, 0))


def test_each_missing_fragment_has_one_question_after_a_delay() -> None:
    found = missing(ANNA, BOB)
    found.handle_arrival(head(0), 0.0)
    found.handle_arrival(head(4), 10.0)
    assert found.due(10.9).questions == []
    assert found.next_at() == 11.0
    questions = found.due(11.0).questions
    assert questions == [number(1, ANNA, 1), number(2, BOB, 2), number(3, ANNA, 3)]
    assert found.due(11.5).questions == []
    assert (found.count, len(found._requests)) == (3, 3)


def test_what_arrives_in_time_is_never_asked_for_and_a_question_is_dropped_when_it_does() -> None:
    found = missing(ANNA)
    found.handle_arrival(head(3), 0.0)
    found.handle_arrival(head(1), 0.5)
    assert [each.message.fragment for each in found.due(1.0).questions] == [0, 2]
    found.handle_arrival(head(0), 1.1)
    found.handle_arrival(head(2), 1.1)
    assert (found.count, len(found._requests), found.next_at()) == (0, 0, None)
    assert reason_of(RemoteError, found.answered, ANNA, 1, Code.NOT_FOUND, 1.2) is Reason.SURPLUS
    assert found.due(9.0).questions == []


def test_what_is_only_told_is_asked_for_alone_and_given_up_if_nobody_has_it() -> None:
    found = missing(ANNA)
    found.note_unverified(10**9, 0.0)
    assert found.due(1.0).questions == [number(1, ANNA, 10**9)]
    for request in (1, 2, 3):
        assert found.answered(ANNA, request, Code.NOT_FOUND, 1.0) is None
        found.due(1.0)
    assert (found.count, found.is_stuck, found.next_at()) == (0, False, None)
    found.note_unverified(2, 2.0)
    assert found.due(3.0).questions == [number(4, ANNA, 2)]
    found.handle_arrival(head(2), 3.1)
    assert [each.message.fragment for each in found.due(9.0).questions] == [0, 1]
    found.note_unverified(3, 9.0)
    found.handle_arrival(head(3), 9.1)
    assert found.count == 2


@pytest.mark.parametrize("code", [Code.NOT_FOUND, Code.INTERNAL_ERROR])
def test_the_next_member_is_asked_when_one_has_it_not(code: Code) -> None:
    found = missing(ANNA, BOB)
    found.note_number(0, 0.0)
    assert found.due(1.0).questions == [number(1, ANNA, 0)]
    assert found.answered(ANNA, 1, code, 1.1) is None
    assert found.due(1.1).questions == [number(2, BOB, 0)]


def test_the_next_member_is_asked_when_one_is_silent_or_gone() -> None:
    found = missing(ANNA, BOB)
    found.note_number(0, 0.0)
    found.due(1.0)
    assert found.next_at() == 3.0
    late = found.due(3.0)
    assert [each.reason for each in late.records] == [Reason.TIMEOUT]
    assert late.questions == [number(2, BOB, 0)]
    found.disconnect(BOB)
    assert found.due(3.1).questions == [number(3, ANNA, 0)]
    found.disconnect(ANNA)
    assert (found.due(9.0).questions, found.next_at()) == ([], None)


def test_after_so_many_questions_it_is_left_until_somebody_else_connects() -> None:
    found = missing(ANNA)
    found.note_number(0, 0.0)
    records = []
    for turn in range(4):
        due = found.due(1.0 + turn)
        records += due.records
        for question in due.questions:
            found.answered(ANNA, question.message.request, Code.NOT_FOUND, 1.0 + turn)
    assert [(each.reason, each.note) for each in records] == [(Reason.GAP_UNFILLED, "0 after 3 questions")]
    assert (found.due(9.0).questions, found.next_at(), found.count) == ([], None, 1)
    found.connect(BOB, 10.0)
    assert [each.message.fragment for each in found.due(11.0).questions] == [0]


def test_one_who_denies_is_not_asked_again_and_when_all_deny_it_is_closed_to_us() -> None:
    found = missing(ANNA, BOB)
    found.handle_arrival(head(1), 0.0)
    assert found.due(1.0).questions == [number(1, ANNA, 0)]
    assert found.answered(ANNA, 1, Code.ACCESS_DENIED, 1.0) is None
    assert found.due(1.0).questions == [number(2, BOB, 0)]
    record = found.answered(BOB, 2, Code.ACCESS_DENIED, 1.0)
    assert record is not None
    assert (record.reason, record.note) == (Reason.NOT_ALLOWED, "all say that 0 is not for us")
    assert (found.closed, found.count, found.next_at()) == ([(0, 0)], 0, None)
    found.connect(CARL, 2.0)
    assert found.due(9.0).questions == []
    found.reopen(9.0)
    assert (found.closed, len(found.due(10.0).questions)) == ([], 1)


def test_one_member_alone_cannot_close_a_fragment_to_us() -> None:
    found = missing(ANNA)
    found.note_number(0, 0.0)
    found.due(1.0)
    assert found.answered(ANNA, 1, Code.ACCESS_DENIED, 1.0) is None
    assert [each.reason for each in found.due(1.0).records] == [Reason.GAP_UNFILLED]
    found.connect(BOB, 2.0)
    assert len(found.due(3.0).questions) == 1


def test_pieces_that_state_rests_on_go_first_and_by_message() -> None:
    found = missing(ANNA)
    found.handle_arrival(head(9), 0.0)
    assert found.want(5)
    assert found.want(5, 100)
    assert found.want(5)
    questions = found.due(1.0).questions
    assert questions == [piece(1, ANNA, 5, 0), piece(2, ANNA, 5, 100), number(3, ANNA, 0), number(4, ANNA, 1)]
    found.handle_arrival(head(3, 5, 0), 1.0)
    assert len(found._requests) == 3


def test_only_so_many_are_asked_for_at_once() -> None:
    found = missing(ANNA)
    found.note_number(99, 0.0)
    assert [each.message.fragment for each in found.due(1.0).questions] == [0, 1, 2, 3]
    assert found.due(1.0).questions == []
    found.handle_arrival(head(1), 1.0)
    assert [each.message.fragment for each in found.due(1.0).questions] == [4]


def test_a_huge_jump_costs_nothing() -> None:
    found = missing(ANNA)
    found.handle_arrival(head(10**12), 0.0)
    assert found.count == 10**12
    assert [each.message.fragment for each in found.due(1.0).questions] == [0, 1, 2, 3]
    found.handle_arrival(head(5 * 10**11), 1.0)
    assert found.count == 10**12 - 1


def raised_by(found: FragmentRepair, fragment: int) -> Reason:
    with pytest.raises(RemoteError) as raised:
        found.handle_arrival(head(fragment), 0.0)
    return raised.value.reason


def test_scattered_numbers_and_wishes_are_bounded() -> None:
    found = missing(ANNA)
    found.handle_arrival(head(9), 0.0)
    for each in range(5, RANGES + 4):
        found.handle_arrival(head(2 * each + 1), 0.0)
    inside = raised_by(found, 4)
    above = raised_by(found, 2 * RANGES + 11)
    assert (inside, above) == (Reason.TOO_MANY, Reason.TOO_MANY)
    found.handle_arrival(head(0), 0.0)  # what splits no gap is always taken
    found.handle_arrival(head(10), 0.0)
    found.handle_arrival(head(4), 0.0)  # and now there is room again
    assert [found.want(each) for each in range(WANTED + 1)].count(False) == 1


def test_answers_of_others_are_named() -> None:
    found = missing(ANNA, BOB)
    found.note_number(0, 0.0)
    found.due(1.0)
    assert reason_of(RemoteError, found.answered, BOB, 1, Code.ACCESS_DENIED, 1.0) is Reason.SURPLUS
    assert found.answered(ANNA, 1, Code.OK, 1.0) is None
    assert len(found._requests) == 1  # until it was checked


def test_it_goes_on_from_what_the_store_has() -> None:
    found = Lacking(upto=40)
    found.handle_arrival(head(40), 0.0)
    found.handle_arrival(head(3), 0.0)
    assert found.count == 0


def test_what_was_missing_when_it_stopped_is_asked_for_again_and_nothing_else() -> None:
    found = Lacking(CONFIG, 40, [(11, 12), (30, 30)])
    assert found.count == 3
    found.connect(ANNA, 5.0)
    assert found.next_at() == 1.0
    assert found.due(5.0).questions == [number(1, ANNA, 11), number(2, ANNA, 12), number(3, ANNA, 30)]
    found.handle_arrival(head(40), 5.0)
    for each in (11, 12, 30):
        found.handle_arrival(head(each), 5.0)
    assert (found.count, len(found._requests), found.next_at()) == (0, 0, None)


def test_what_was_left_is_asked_for_again_at_a_sign_of_life_and_ever_more_rarely() -> None:
    config = replace(CONFIG, keepalive=10.0)
    found = missing(ANNA, config=config)
    found.handle_arrival(head(1), 0.0)

    def in_vain(now: float) -> int:
        questions = 0
        while asked := found.due(now).questions:
            questions += len(asked)
            now += 2.0
        return questions

    assert in_vain(1.0) == 3
    assert (found.count, found.is_stuck) == (1, True)
    for said, (now, questions) in enumerate(((20.0, 3), (29.0, 0), (49.0, 3), (68.0, 0)), 2):
        found.handle_arrival(head(said), now)
        assert in_vain(now + 1.0) == questions
    found.handle_arrival(head(0), 90.0)
    assert (found.count, found.is_stuck) == (0, False)


def test_who_brings_one_after_the_other_is_not_late_with_the_next_but_not_for_ever() -> None:
    found = missing(ANNA, config=replace(CONFIG, replays_at_once=64))
    found.handle_arrival(head(40), 0.0)
    assert len(found.due(1.0).questions) == 40
    for each in range(30):
        now = 2.0 + each
        found.handle_arrival(head(each), now)
        assert found.due(now).questions == []
        assert found.next_at() == min(now + 2.0, 1.0 + 16 * 2.0)
    late = found.due(33.0)
    assert [each.message.fragment for each in late.questions] == list(range(30, 40))
    assert {each.reason for each in late.records} == {Reason.TIMEOUT}


def test_who_is_busy_is_asked_again_after_a_moment_and_others_at_once() -> None:
    found = missing(ANNA, BOB)
    found.handle_arrival(head(1), 0.0)
    assert found.due(1.0).questions == [number(1, ANNA, 0)]
    found.answered(ANNA, 1, Code.INTERNAL_ERROR, 1.5)
    assert found.due(1.5).questions == [number(2, BOB, 0)]
    found.answered(BOB, 2, Code.INTERNAL_ERROR, 1.6)
    assert found.due(1.6).questions == []
    assert found.next_at() == 2.6
    assert found.due(2.6).questions == [number(3, ANNA, 0)]


def test_what_three_deny_and_the_others_do_not_have_is_closed() -> None:
    dora, emil = PeerId(b"d" * 32), PeerId(b"e" * 32)
    for denying, closed in (((ANNA, BOB, CARL), [(0, 0)]), ((ANNA, BOB), [])):
        found = missing(ANNA, BOB, CARL, dora, emil, config=replace(CONFIG, replay_tries=5))
        found.handle_arrival(head(1), 0.0)
        for _ in range(5):
            for question in found.due(1.0).questions:
                code = Code.ACCESS_DENIED if question.peer in denying else Code.NOT_FOUND
                found.answered(question.peer, question.message.request, code, 1.0)
        found.due(1.0)
        assert found.closed == closed
        assert found.count == (0 if closed else 1)


@pytest.mark.parametrize(("denying", "is_closed"), [(8, True), (4, True), (3, False)])
def test_among_many_those_who_were_asked_decide(denying: int, is_closed: bool) -> None:
    crowd = [PeerId(bytes([number]) * 32) for number in range(20)]
    found = missing(*crowd, config=replace(CONFIG, replay_tries=8))
    found.handle_arrival(head(1), 0.0)
    answers = [Code.ACCESS_DENIED] * denying + [Code.NOT_FOUND] * (8 - denying)
    for code in answers:
        (question,) = found.due(1.0).questions
        found.answered(question.peer, question.message.request, code, 1.0)
    found.due(1.0)
    assert (found.closed == [(0, 0)]) is is_closed


def test_what_all_deny_is_closed_also_if_the_last_of_them_is_gone_meanwhile() -> None:
    found = missing(ANNA, BOB, CARL)
    found.handle_arrival(head(1), 0.0)
    asked = found.due(1.0).questions
    for _ in range(2):
        (question,) = asked
        assert found.answered(question.peer, question.message.request, Code.ACCESS_DENIED, 1.0) is None
        asked = found.due(1.0).questions
    found.disconnect(asked[0].peer)
    records = found.due(1.0).records
    assert [each.reason for each in records] == [Reason.NOT_ALLOWED]
    assert (found.count, found.closed) == (0, [(0, 0)])


def test_a_fragment_that_a_term_opens_behind_is_sought_and_leaves_no_gap() -> None:
    found = missing(ANNA)
    for each in range(4):
        found.handle_arrival(head(each), 0.0)
    found.seek(2)
    assert found.next_at() == 0.0
    assert found.due(0.0).questions == [number(1, ANNA, 2)]
    found.handle_found(2)
    assert (len(found._requests), found.count) == (0, 0)
    found.seek(3)
    for tick in range(3):
        found.due(2.0 * tick)
    assert [each.reason for each in found.due(6.0).records] == [Reason.TIMEOUT, Reason.GAP_UNFILLED]
    assert (len(found._requests), found.count, found.is_stuck) == (0, 0, False)


def test_behind_a_cut_numbers_are_missing_anew() -> None:
    found = missing(ANNA)
    found.handle_arrival(head(0), 0.0)
    found.note_number(9, 0.0)
    found.want(4)
    found.want(9)
    found.due(1.0)
    found.rewind(6, 5)
    assert found.count == 5
    found.handle_arrival(head(6), 2.0)
    found.note_number(7, 2.0)
    asked = [each.message.fragment for each in found.due(3.0).questions]
    assert found.count == 6
    assert 9 not in asked


def test_questions_about_what_was_cut_away_are_over_and_leave_room_for_others() -> None:
    found = missing(ANNA)
    for each in range(6):
        found.handle_arrival(head(each), 0.0)
    found.want(9)
    found.note_number(8, 0.0)
    assert found.due(1.0).questions == [
        piece(1, ANNA, 9, 0),
        number(2, ANNA, 6),
        number(3, ANNA, 7),
        number(4, ANNA, 8),
    ]
    found.want(10)
    found.rewind(7, 8)
    for request in (1, 3, 4):
        assert reason_of(RemoteError, found.answered, ANNA, request, Code.NOT_FOUND, 1.1) is Reason.SURPLUS
    found.want(5)
    found.want(6)
    found.want(7)
    asked = [each.message.message for each in found.due(1.2).questions]
    assert asked == [5, 6, 7], "as many at once as before, and none of what was cut away"
    found.handle_arrival(head(6), 1.3)
    assert found.count == 0, "a number is missing once somebody has given it anew"


def test_what_waits_for_room_does_not_make_the_clock_stand() -> None:
    missing = Lacking(PlacesConfig(replays_at_once=1), 0)
    missing.connect(PeerId(b"p" * 32), 0.0)
    missing.want(5)
    missing.want(6)
    assert missing.next_at() == 0.0, "there is room"
    assert len(missing.due(0.0).questions) == 1
    at = missing.next_at()
    assert at is not None
    assert at > 0.0, "the next look is when an answer is late, not at once and for ever"


def test_a_huge_range_costs_one_entry() -> None:
    gaps = Gaps()
    gaps.open(5, 10**12, 1.0)
    assert gaps.fill(10**6)
    assert list(gaps) == [Gap(5, 10**6 - 1, 1.0), Gap(10**6 + 1, 10**12, 1.0)]
    assert gaps.count == 10**12 - 5
    assert not gaps.fill(10**6)
    gaps.clear()
    assert len(gaps) == 0


def test_numbers_that_are_given_anew_are_forgotten() -> None:
    gaps = Gaps()
    gaps.open(3, 4, 1.0)
    gaps.open(6, 9, 1.0)
    gaps.open(12, 13, 1.0)
    gaps.cut(8)
    assert list(gaps) == [Gap(3, 4, 1.0), Gap(6, 7, 1.0)]


def test_what_is_below_a_number_is_forgotten() -> None:
    gaps = Gaps()
    gaps.open(1, 2, 1.0)
    gaps.open(4, 9, 1.0)
    gaps.open(12, 13, 1.0)
    gaps.begin(7)
    assert list(gaps) == [Gap(7, 9, 1.0), Gap(12, 13, 1.0)]


def test_what_is_missing_for_longer_stays_so() -> None:
    gaps = Gaps()
    gaps.open(3, 4, 1.0)
    gaps.open(1, 6, 2.0)
    assert list(gaps) == [Gap(1, 2, 2.0), Gap(3, 4, 1.0), Gap(5, 6, 2.0)]


STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 30), st.integers(0, 8)), max_size=40)


@given(steps=STEPS)
def test_it_is_the_set_that_it_says(steps: list[tuple[bool, int, int]]) -> None:
    gaps, plain = Gaps(), set[int]()
    for opens, number, more in steps:
        if opens:
            gaps.open(number, number + more, 0.0)
            plain |= set(range(number, number + more + 1))
        else:
            assert gaps.fill(number) == (number in plain)
            plain.discard(number)
    listed = [number for gap in gaps for number in range(gap.first, gap.last + 1)]
    assert listed == sorted(plain)
    assert gaps.count == len(plain)
    assert all((number in gaps) == (number in plain) for number in range(40))
