"""Who of several is told what, and how: in bounded portions, live or from the store."""

from __future__ import annotations

import pytest
from tests.places.stage import Stage

from linnet.core.ids import AuthorId
from linnet.core.reasons import Reason
from linnet.delivery.items import Ended, Item
from linnet.places import subscriber
from linnet.places.channel.packet import Modifier, Packet
from linnet.places.channel.reassembly import Broken
from linnet.places.commands import Announced, AnnounceMore
from linnet.places.config import PlacesConfig
from linnet.places.items import Body, Changed, Knocked, Lost, PlaceItem, Said, TakenBack
from linnet.trace.records import Kind

ANN = AuthorId(b"ann....." * 4)
TEA = Packet((), "_request_tea", b"please")


def methods(stage: Stage, number: int) -> list[str]:
    return [item.method for item in stage.take(number) if isinstance(item, Said)]


def test_a_message_goes_to_the_most_specific_name_and_to_those_who_named_none() -> None:
    stage = Stage()
    stage.watch(1, methods=("_message", "_notice"))
    stage.watch(2, methods=("_message_public",))
    stage.watch(3, methods=("",))
    stage.watch(4)
    stage.watch(5, messages=False)
    said = ["_message_public_shout", "_message", "_notice_news", "_other"]
    for method in said:
        stage.say(b"x", method)
    heard = [methods(stage, number) for number in range(1, 6)]
    assert heard == [["_message", "_notice_news"], ["_message_public_shout"], ["_other"], said, []]
    stage.unwatch(2)
    stage.say(b"x", "_message_public")
    assert methods(stage, 1) == ["_message_public"]


def test_objects_are_told_by_their_prefix() -> None:
    stage = Stage()
    stage.watch(1, messages=False, objects="_profile")
    stage.watch(2, messages=False, objects=None)
    stage.watch(3, messages=False)
    number = stage.say(b"", modifiers=(Modifier("=", "_profile_city", b"Oslo"), Modifier("=", "_x", b"y")))
    city = Changed(stage.place, number, "_profile_city", b"Oslo")
    assert stage.take(1) == [city]
    assert stage.take(2) == []
    assert stage.take(3) == [city, Changed(stage.place, number, "_x", b"y")]
    assert stage.declined_watch(objects="no name").reason is Reason.MALFORMED


def test_one_who_is_declined_for_a_method_that_is_none_watches_nothing() -> None:
    stage = Stage()
    declined = stage.declined_watch(methods=("_message", "no name"), objects="")
    assert declined.reason is Reason.MALFORMED
    stage.watch(1, methods=("",))
    stage.say(b"x", modifiers=(Modifier("=", "_x", b"y"),))
    assert methods(stage, 1) == ["_message"]
    assert stage.take(99) == []


def test_requests_and_knocks_are_told_to_those_who_want_them() -> None:
    stage = Stage()
    subscribers = stage.places._places[stage.place].subscribers
    assert not subscribers.hears("_request_tea")
    stage.watch(1, methods=("_request",), door=False)
    stage.watch(2, messages=False)
    assert subscribers.hears("_request_tea")
    assert not subscribers.hears("_other")
    said = Said(stage.place, 1, ANN, ANN, "_request_tea", (), False)
    body = Body(stage.place, 1, ANN, 0, b"please", True)
    knocked = Knocked(stage.place, ANN, "_request_place_enter", (), b"")
    subscribers.tell_request(ANN, 1, TEA)
    subscribers.tell_knock(knocked)
    stage.act()
    assert (stage.take(1), stage.take(2)) == ([said, body], [knocked])


def test_a_request_is_kept_until_somebody_has_handled_it() -> None:
    stage = Stage()
    stage.watch(1)
    for request in (1, 2):
        stage.places._places[stage.place].subscribers.tell_request(ANN, request, TEA)
        stage.act()
    assert len(stage.take(1)) == 4
    stage.consumed(1, 3)  # the second one's body is not among these
    stage.restart()
    stage.watch(1, methods=("_other",))
    assert stage.take(1) == []
    stage.watch(2, methods=("_request",))
    said = Said(stage.place, 2, ANN, ANN, "_request_tea", (), False)
    assert stage.take(2) == [said, Body(stage.place, 2, ANN, 0, b"please", True)]
    stage.consumed(2, 2)
    stage.restart()
    stage.watch(1)
    assert stage.take(1) == []


def test_one_who_takes_nothing_ends_when_too_much_waits_that_is_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subscriber, "ASIDE_BYTES", 1000)
    stage = Stage()
    subscribers = stage.places._places[stage.place].subscribers
    stage.watch(1)
    for request in (1, 2):
        packet = Packet((), "_request", bytes(5_000_000))
        subscribers.tell_request(ANN, request, packet)
        stage.act()
    assert [type(item) for item in stage.take(1)] == [Said, Body, Ended]
    dropped = [each.reason for each in stage.records if each.kind is Kind.DROPPED]
    assert dropped == [Reason.SUBSCRIBER_SLOW]


def test_a_number_is_used_once_and_watches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    stage.watch(1)
    assert stage.declined_watch(number=1).reason is Reason.IN_USE
    monkeypatch.setattr("linnet.places.subscriber.WATCHERS", 1)
    assert stage.declined_watch(number=2).reason is Reason.TOO_MANY


BYTES = 65_536
TIGHT = PlacesConfig(watch_bytes=BYTES)


def bodies(items: list[Item | PlaceItem]) -> dict[int, bytes]:
    """By message, what was handed over of its body in one piece after the other."""
    found: dict[int, bytes] = {}
    for item in items:
        if isinstance(item, Body):
            held = found.get(item.message, b"")
            assert len(held) == item.offset
            found[item.message] = held + item.data
    return found


def drain(stage: Stage, number: int) -> list[Item | PlaceItem]:
    """Take and handle until nothing more comes; never more than a window is on its way."""
    found: list[Item | PlaceItem] = []
    while portion := stage.take(number):
        assert sum(len(item.data) for item in portion if isinstance(item, Body)) <= BYTES + 61_440
        found += portion
        stage.consumed(number, len(portion))
    return found


def test_a_slow_one_reads_the_rest_from_the_store_and_each_byte_once() -> None:
    stage = Stage(TIGHT)
    stage.watch(1)
    large, small = bytes(range(250)) * 4000, b"small"
    first, second = stage.say(large), stage.say(small)
    assert bodies(drain(stage, 1)) == {first: large, second: small}
    third = stage.say(b"live again")
    assert bodies(drain(stage, 1)) == {third: b"live again"}


def test_messages_that_are_under_way_at_once_come_piece_by_piece() -> None:
    stage = Stage(TIGHT)
    stage.watch(1)
    opened = stage.say(b"a" * 50_000, more=True)
    between = stage.say(b"b" * 50_000)
    for number in range(5):
        stage.ask(AnnounceMore(stage.place, opened, b"c" * 50_000, number < 4), Announced)
    heard = bodies(drain(stage, 1))
    assert heard == {opened: b"a" * 50_000 + b"c" * 250_000, between: b"b" * 50_000}


def test_a_cut_ends_a_message_that_was_begun_before_it_and_has_more_in_the_store() -> None:
    stage = Stage(TIGHT)
    stage.watch(1)
    opened = stage.say(b"a" * 50_000, more=True)
    for _ in range(5):
        stage.ask(AnnounceMore(stage.place, opened, b"b" * 50_000, True), Announced)
    later = stage.say(b"later")
    slow = stage.take(1)
    assert 0 < len(bodies(slow)[opened]) < 300_000
    reason = "its term ended before it did"
    subscribers = stage.places._places[stage.place].subscribers
    subscribers.take_back([later], [Broken(opened, Reason.STALE, reason)])
    stage.act()
    stage.consumed(1, len(slow))
    rest = drain(stage, 1)
    assert Lost(stage.place, opened, opened, Reason.STALE) in rest
    assert opened not in bodies(rest)
    again = [item for item in rest if isinstance(item, Said)]
    assert [item.message for item in again] == [later], "what has its number now is handed over"


@pytest.mark.parametrize("since", [1, 3])
def test_whoever_comes_later_is_handed_what_is_older_first(since: int) -> None:
    stage = Stage()
    numbers = [stage.say(b"%d" % number) for number in range(4)]
    stage.watch(1, since=since)
    new = stage.say(b"new")
    items = drain(stage, 1)
    assert list(bodies(items)) == [number for number in (*numbers, new) if number >= since]
    historic = {item.message: item.historic for item in items if isinstance(item, Said)}
    assert historic == {number: number != new for number in (*numbers, new) if number >= since}


def test_a_message_that_began_before_is_handed_to_those_alone_who_asked_for_it() -> None:
    stage = Stage()
    opened = stage.say(b"a", more=True)
    stage.watch(1)
    stage.watch(2, since=opened)
    stage.ask(AnnounceMore(stage.place, opened, b"b", False), Announced)
    assert bodies(drain(stage, 1)) == {}
    assert bodies(drain(stage, 2)) == {opened: b"ab"}


def test_the_place_of_a_durable_one_is_the_first_message_not_handled_whole() -> None:
    stage = Stage()
    assert not stage.watch(1, durable="bot").resumed
    first, second, third = (stage.say(text) for text in (b"1", b"2", b"3"))
    items = stage.take(1)
    upto_second = 1 + max(at for at, item in enumerate(items) if getattr(item, "message", 0) == first)
    stage.consumed(1, upto_second + 1)
    stage.restart()
    resumed = stage.watch(1, durable="bot")
    assert (resumed.resumed, resumed.since) == (True, second)
    assert list(bodies(drain(stage, 1))) == [second, third]
    stage.restart()
    assert stage.watch(1, durable="bot").since == third + 1


def test_a_durable_one_that_was_away_at_a_cut_hears_of_it_until_it_has_handled_that() -> None:
    stage = Stage()
    stage.watch(1, durable="bot")
    _, second, third, fourth = (stage.say(text) for text in (b"1", b"2", b"3", b"4"))
    drain(stage, 1)
    stage.unwatch(1)
    assert stage.take(1) == [Ended(None)]
    subscribers = stage.places._places[stage.place].subscribers
    subscribers.take_back([third, fourth], [])
    subscribers.take_back([second], [])
    assert stage.watch(1, durable="bot").since == second
    told = [TakenBack(stage.place, (third, fourth, second))]
    taken = stage.take(1)
    assert taken[:1] == told
    stage.restart()
    assert stage.watch(1, durable="bot").since == second
    assert stage.take(1)[:1] == told, "it may have crashed before it did anything about it"
    stage.consumed(1, 1)
    stage.restart()
    assert stage.watch(1, durable="bot").since == second
    assert [item for item in stage.take(1) if isinstance(item, TakenBack)] == []


def test_a_durable_one_that_was_handed_nothing_behind_a_cut_hears_nothing_of_it() -> None:
    stage = Stage()
    stage.watch(1, durable="bot")
    first = stage.say(b"1")
    drain(stage, 1)
    stage.unwatch(1)
    assert stage.take(1) == [Ended(None)]
    second = stage.say(b"2")
    stage.places._places[stage.place].subscribers.take_back([second], [])
    assert stage.watch(1, durable="bot").since == second == first + 1
    assert bodies(stage.take(1)) == {second: b"2"}


def test_what_was_evicted_is_told_as_lost() -> None:
    stage = Stage()
    numbers = [stage.say(b"%d" % number) for number in range(3)]
    fragments = stage.places._places[stage.place].parts.fragments
    for number in numbers[:2]:
        row = fragments.get_at(number, 0)
        assert row is not None
        fragments.evicted(row)
    stage.watch(1, since=numbers[0])
    items = drain(stage, 1)
    assert [(item.first, item.last) for item in items if isinstance(item, Lost)] == [(numbers[0], numbers[1])]
    assert list(bodies(items)) == [numbers[2]]
