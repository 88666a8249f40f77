from __future__ import annotations

from msgspec.structs import replace

from linnet.sim.judges.places import Guest, Outsider, Word, judge_place
from linnet.sim.judges.verdict import Rule

WORDS = [
    Word("one", "host", 10.0, 10.1, (("_colour", "red"),)),
    Word("two", "cohost", 20.0, 20.1),
    Word("three", "host", 30.0, 30.1, (("_size", "big"), ("_colour", "blue"))),
]
LINE = ((1, "one"), (4, "two"), (5, "three"))
STATE = (("_colour", "blue"), ("_size", "big"))


def guest(name: str = "ann", line: tuple[tuple[int, str], ...] = LINE, since: float = 0.0) -> Guest:
    return Guest(name, since, line, tuple(text for _, text in line), 0, (), STATE)


def rules(*guests: Guest, words: list[Word] = WORDS, out: tuple[Outsider, ...] = ()) -> list[Rule]:
    return [complaint.rule for complaint in judge_place(words, guests, out)]


def test_guests_who_have_one_line_and_its_state_are_no_cause_for_complaint() -> None:
    assert rules(guest(), guest("bob")) == []


def test_who_came_later_has_the_state_of_the_whole_line() -> None:
    assert rules(guest(), guest("bob", LINE[1:], since=15.0)) == []


def test_a_word_that_was_dropped_is_missing() -> None:
    assert rules(guest(), guest("bob", LINE[::2])) == [Rule.MISSING]


def test_a_word_that_everybody_lost_alike_is_missing() -> None:
    assert rules(guest("ann", LINE[::2]), guest("bob", LINE[::2])) == [Rule.MISSING] * 2


def test_a_word_that_others_hold_must_not_be_told_as_lost() -> None:
    told = replace(guest("bob", LINE[::2]), lost=((4, 4),))
    assert rules(guest(), told) == [Rule.TOLD_LOST]


def test_a_word_that_stands_before_a_notice_which_was_said_again_is_not_due() -> None:
    late = replace(guest("bob", LINE[2:]), lost=((1, 4),), closed=((1, 4),))
    assert rules(guest(), late) == []
    within = replace(guest("bob", LINE[::2]), lost=((4, 4),), closed=((4, 4),))
    assert rules(guest(), within) == [Rule.TOLD_LOST]
    assert rules(replace(late, closed=())) == [Rule.TOLD_LOST] * 2


def test_a_word_of_the_dead_is_not_due() -> None:
    words = [WORDS[0], replace(WORDS[1], is_owed=False), WORDS[2]]
    assert rules(guest("ann", LINE[::2]), words=words) == []


def test_a_word_that_nobody_said_is_invented() -> None:
    assert rules(guest("ann", (*LINE, (6, "four")))) == [Rule.INVENTED]


def test_a_word_under_two_numbers_is_doubled() -> None:
    line = ((1, "one"), (4, "two"), (5, "three"), (9, "two"))
    assert rules(guest("ann", line)) == [Rule.DOUBLED]


def test_a_speaker_who_is_heard_in_another_order_is_reordered() -> None:
    line = ((1, "three"), (4, "two"), (5, "one"))
    state = (("_colour", "red"), ("_size", "big"))
    assert rules(replace(guest("ann", line), objects=state)) == [Rule.REORDERED]


def test_one_number_has_one_text() -> None:
    other = ((1, "one"), (5, "two"), (6, "three"))
    assert Rule.REORDERED in rules(guest(), guest("bob", other))


def test_state_that_is_wiped_everywhere_alike_is_seen() -> None:
    wiped = [replace(guest(name), objects=()) for name in ("ann", "bob")]
    assert rules(*wiped) == [Rule.STATE] * 2


def test_state_that_is_old_everywhere_alike_is_seen() -> None:
    old = [replace(guest(name), objects=(("_colour", "red"), ("_size", "big"))) for name in ("ann", "bob")]
    assert rules(*old) == [Rule.STATE] * 2


def test_a_reset_and_an_empty_value_take_objects_away() -> None:
    words = [*WORDS, Word("four", "host", 40.0, 40.1, (("_size", ""),), resets=True)]
    cleared = replace(guest("ann", (*LINE, (6, "four"))), objects=())
    assert rules(cleared, words=words) == []


def test_who_was_put_out_must_not_hear_what_is_said_after() -> None:
    out = Outsider("eve", 25.0, "host", ("one", "two", "three"))
    assert rules(guest(), out=(out,)) == [Rule.FORBIDDEN]
    assert rules(guest(), out=(replace(out, since=35.0),)) == []
