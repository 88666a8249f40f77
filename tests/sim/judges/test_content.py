from __future__ import annotations

from msgspec.structs import replace

from linnet.core.ids import EventId
from linnet.sim.judges.content import Publication, Subscriber, judge_content
from linnet.sim.judges.verdict import Rule


def event(number: int, at: float = 100.0, topic: str = "tea") -> Publication:
    return Publication(EventId(bytes([number]) * 32), topic, number, "ann", at, True)


EVENTS = [event(5), event(10), event(11), event(7, topic="cake")]


def subscriber(*handed: int) -> Subscriber:
    lives = (tuple(EventId(bytes([each]) * 32) for each in handed),)
    return Subscriber("bob", "tea", 5, 10, 50.0, 500.0, (), lives)


def rules(*subscribers: Subscriber, events: list[Publication] = EVENTS) -> list[Rule]:
    return [complaint.rule for complaint in judge_content(events, subscribers)]


def test_who_has_just_what_it_asked_for_is_no_cause_for_complaint() -> None:
    assert rules(subscriber(5, 10)) == []
    assert rules(subscriber(10, 5)) == []


def test_an_event_that_was_dropped_is_missing() -> None:
    assert rules(subscriber(5)) == [Rule.MISSING]


def test_an_event_that_was_told_to_be_wanting_is_not_due() -> None:
    assert rules(subscriber(5), events=[EVENTS[0], replace(EVENTS[1], is_complete=False)]) == []


def test_who_was_away_or_came_later_lacks_nothing() -> None:
    assert rules(replace(subscriber(5), away=(130.0,))) == []
    assert rules(replace(subscriber(), made=80.0)) == []
    assert rules(replace(subscriber(5), away=(300.0,))) == [Rule.MISSING]


def test_an_event_that_came_twice_is_doubled() -> None:
    assert rules(subscriber(5, 10, 5)) == [Rule.DOUBLED]


def test_an_event_that_was_not_asked_for_is_invented() -> None:
    assert rules(subscriber(5, 10, 11)) == [Rule.INVENTED]
    assert rules(subscriber(5, 10, 7)) == [Rule.INVENTED]
    assert rules(subscriber(5, 10, 99)) == [Rule.INVENTED]


def test_an_event_of_a_revoked_device_is_forbidden() -> None:
    assert rules(subscriber(5, 10), events=[EVENTS[0], replace(EVENTS[1], is_forbidden=True)]) == [
        Rule.FORBIDDEN
    ]
