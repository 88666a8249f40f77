from __future__ import annotations

from msgspec.structs import replace

from linnet.core.ids import DeviceId, EventId
from linnet.sim.judges.streams import Life, Publication, Reader, Receipt, judge_stream
from linnet.sim.judges.verdict import Rule

ANN, BOB = DeviceId(b"a" * 16), DeviceId(b"b" * 16)


def event(device: DeviceId, seq: int, at: float, *, is_owed: bool = True) -> Publication:
    name = "ann" if device == ANN else "bob"
    id = EventId(device[:1] + bytes([seq]) * 31)
    return Publication(id, device, seq, name, at, at + 1.0, is_owed, spread=at + 2.0)


SAID = [event(ANN, 0, 10.0), event(ANN, 1, 100.0), event(BOB, 0, 110.0), event(ANN, 2, 120.0)]


def receipts(*events: Publication) -> tuple[Receipt, ...]:
    return tuple(Receipt(each.id, each.device, each.seq) for each in events)


def reader(*lives: tuple[Receipt, ...], from_now: bool = True) -> Reader:
    return Reader("cid", from_now, 50.0, 51.0, tuple(Life(each, ()) for each in lives), True)


def rules(*readers: Reader, said: list[Publication] = SAID) -> list[Rule]:
    return [complaint.rule for complaint in judge_stream(said, readers)]


GOOD = receipts(SAID[1], SAID[2], SAID[3])


def test_a_reader_who_has_all_since_it_asked_is_no_cause_for_complaint() -> None:
    assert rules(reader(GOOD)) == []


def test_publishers_do_not_wait_for_each_other() -> None:
    assert rules(reader(receipts(SAID[2], SAID[1], SAID[3]))) == []


def test_an_event_that_was_dropped_is_missing() -> None:
    assert rules(reader(receipts(SAID[1], SAID[3]))) == [Rule.MISSING]


def test_an_absence_that_was_told_is_no_cause_for_complaint() -> None:
    told = Life(receipts(SAID[1], SAID[3]), ((BOB, 0, 4),))
    assert rules(replace(reader(), lives=(told,))) == []


def test_what_was_told_of_another_chain_excuses_nothing() -> None:
    told = Life(receipts(SAID[1], SAID[3]), ((ANN, 0, 4),))
    assert rules(replace(reader(), lives=(told,))) == [Rule.MISSING]


def test_what_only_the_dead_had_is_not_due() -> None:
    said = [*SAID[:2], replace(SAID[2], is_owed=False), SAID[3]]
    assert rules(reader(receipts(SAID[1], SAID[3])), said=said) == []


def test_whoever_does_not_run_in_the_end_lacks_nothing() -> None:
    assert rules(replace(reader(()), is_running=False)) == []


def test_an_event_that_came_twice_is_doubled() -> None:
    assert rules(reader((*GOOD, GOOD[0]))) == [Rule.DOUBLED]


def test_after_a_crash_only_what_was_not_handled_may_come_again() -> None:
    again = reader(GOOD, GOOD[2:])
    assert rules(again) == []
    handled = frozenset({SAID[3].id})
    later = replace(again.lives[1], consumed=handled)
    assert rules(replace(again, lives=(again.lives[0], later))) == []
    earlier = replace(again.lives[0], consumed=handled)
    assert rules(replace(again, lives=(earlier, later))) == [Rule.DOUBLED]


def test_a_chain_in_another_order_is_reordered() -> None:
    assert rules(reader(receipts(SAID[3], SAID[2], SAID[1]))) == [Rule.REORDERED]


def test_an_event_that_nobody_published_is_invented() -> None:
    foreign = Receipt(EventId(b"x" * 32), ANN, 3)
    assert rules(reader((*GOOD, foreign))) == [Rule.INVENTED]


def test_an_event_under_another_number_is_invented() -> None:
    wrong = replace(GOOD[2], seq=7)
    assert rules(reader((*GOOD[:2], wrong))) == [Rule.INVENTED, Rule.MISSING]


def test_an_event_from_before_a_subscription_from_now_on_is_old() -> None:
    assert rules(reader(receipts(SAID[0]) + GOOD)) == [Rule.OLD]
    assert rules(reader(receipts(SAID[0]) + GOOD, from_now=False)) == []


def test_what_its_publisher_alone_had_is_new_to_whoever_comes() -> None:
    said = [replace(SAID[0], spread=60.0), *SAID[1:]]
    assert rules(reader(receipts(SAID[0]) + GOOD), said=said) == []


def test_with_a_wrong_clock_nobody_can_tell_what_is_old() -> None:
    said = [replace(SAID[0], was_wrong=True), *SAID[1:]]
    assert rules(reader(receipts(SAID[0]) + GOOD), said=said) == []


def test_an_event_of_a_device_that_was_long_revoked_is_forbidden() -> None:
    said = [*SAID[:3], replace(SAID[3], is_forbidden=True)]
    assert rules(reader(GOOD), said=said) == [Rule.FORBIDDEN]
