from __future__ import annotations

from msgspec.structs import replace

from linnet.core.ids import AuthorId, EventId
from linnet.sim.judges.rooms import Leaver, Member, Message, Outcast, Ruling, Seen, judge_room
from linnet.sim.judges.verdict import Rule


def said(number: int, sender: str, *after: int) -> Message:
    ids = frozenset(EventId(bytes([each]) * 32) for each in after)
    return Message(EventId(bytes([number]) * 32), f"m{number}", sender, 10.0 * number, ids, True)


MESSAGES = [said(1, "ann"), said(2, "bob", 1), said(3, "ann", 1, 2)]
RULINGS = [Ruling("level of bob", "5", 1.0), Ruling("level of bob", "10", 2.0), Ruling("name", "lab", 0.0)]
STATE = (("level of bob", "10"), ("name", "lab"))


def member(*handed: int, name: str = "bob") -> Member:
    life = Seen(tuple(EventId(bytes([each]) * 32) for each in handed), frozenset())
    return Member(name, AuthorId(b"p" * 32), (life,), STATE)


def rules(
    *members: Member,
    messages: list[Message] = MESSAGES,
    rulings: list[Ruling] = RULINGS,
    outcasts: tuple[Outcast, ...] = (),
    leavers: tuple[Leaver, ...] = (),
) -> list[Rule]:
    return [each.rule for each in judge_room(messages, rulings, members, outcasts, "ann", leavers)]


def test_members_who_have_all_and_see_what_was_decided_are_no_cause_for_complaint() -> None:
    assert rules(member(1, 2, 3), member(1, 2, 3, name="cid")) == []


def test_a_message_that_was_dropped_is_missing() -> None:
    assert rules(member(1, 2)) == [Rule.MISSING]


def test_a_message_that_cannot_be_read_and_says_so_is_no_cause_for_complaint() -> None:
    life = Seen((MESSAGES[0].id, MESSAGES[1].id), frozenset({MESSAGES[2].id}))
    assert rules(replace(member(), lives=(life,))) == []


def test_a_message_of_the_dead_is_not_due() -> None:
    messages = [*MESSAGES[:2], replace(MESSAGES[2], is_owed=False)]
    assert rules(member(1, 2), messages=messages) == []


def test_a_message_that_came_twice_is_doubled() -> None:
    assert rules(member(1, 2, 3, 3)) == [Rule.DOUBLED]


def test_after_a_crash_only_what_was_not_handled_may_come_again() -> None:
    first = member(1, 2, 3)
    handled = frozenset({MESSAGES[2].id})
    later = Seen((MESSAGES[2].id,), frozenset(), handled)
    assert rules(replace(first, lives=(*first.lives, later))) == []
    earlier = replace(first.lives[0], consumed=handled)
    assert rules(replace(first, lives=(earlier, later))) == [Rule.DOUBLED]


def test_an_answer_before_what_it_answers_is_reordered() -> None:
    assert rules(member(2, 1, 3)) == [Rule.REORDERED]


def test_a_message_that_nobody_said_is_invented() -> None:
    assert rules(member(1, 2, 3, 9)) == [Rule.INVENTED]


def test_a_message_of_a_revoked_device_is_forbidden() -> None:
    messages = [*MESSAGES, replace(said(4, "phone"), is_forbidden=True, is_owed=False)]
    assert rules(member(1, 2, 3, 4), messages=messages) == [Rule.FORBIDDEN]


def test_state_that_is_wrong_everywhere_alike_is_seen() -> None:
    wrong = [replace(member(1, 2, 3, name=name), state=(("level of bob", "5"), STATE[1])) for name in "bc"]
    assert rules(*wrong) == [Rule.STATE] * 2


def test_state_that_is_wiped_everywhere_alike_is_seen() -> None:
    assert rules(replace(member(1, 2, 3), state=())) == [Rule.STATE] * 2


def test_power_that_nobody_gave_is_seen() -> None:
    seized = replace(member(1, 2, 3), state=(*STATE, ("level of dan", "100")))
    assert rules(seized) == [Rule.STATE]


def test_what_was_not_acknowledged_may_have_come_about_or_not() -> None:
    rulings = [*RULINGS, Ruling("level of bob", "20", 3.0, is_sure=False)]
    done = replace(member(1, 2, 3), state=(("level of bob", "20"), STATE[1]))
    assert rules(member(1, 2, 3), done, rulings=rulings) == []


def test_who_was_banned_must_not_read_on() -> None:
    handed = frozenset(each.id for each in MESSAGES)
    assert rules(member(1, 2, 3), outcasts=(Outcast("eve", 25.0, handed),)) == [Rule.FORBIDDEN]
    assert rules(member(1, 2, 3), outcasts=(Outcast("eve", 35.0, handed),)) == []


def test_what_a_revoked_device_said_to_who_could_not_know_is_no_cause_for_complaint() -> None:
    messages = [*MESSAGES, replace(said(4, "ann-phone"), is_owed=False, is_forbidden=True)]
    assert rules(member(1, 2, 3, 4), messages=messages) == [Rule.FORBIDDEN]
    unwarned = replace(member(1, 2, 3, 4), unwarned=frozenset({messages[3].id}))
    assert rules(unwarned, messages=messages) == []


def test_who_left_has_nothing_that_anybody_said_later() -> None:
    cid = Leaver("cid", 15.0, frozenset({MESSAGES[0].id}))
    assert rules(member(1, 2, 3), leavers=(cid,)) == []
    late = replace(cid, handed=frozenset({MESSAGES[0].id, MESSAGES[1].id}))
    assert rules(member(1, 2, 3), leavers=(late,)) == [Rule.FORBIDDEN]


def test_a_member_who_takes_somebody_for_a_member_that_left_sees_a_wrong_state() -> None:
    rulings = [*RULINGS, Ruling("membership of cid", "join", 1.0), Ruling("membership of cid", "leave", 5.0)]
    heard = replace(member(1, 2, 3), state=(*STATE, ("membership of cid", "leave")))
    unheard = replace(member(1, 2, 3), state=(*STATE, ("membership of cid", "join")))
    assert rules(heard, rulings=rulings) == []
    assert rules(unheard, rulings=rulings) == [Rule.STATE]
