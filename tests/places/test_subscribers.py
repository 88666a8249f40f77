"""Who of several is told what: by methods, by objects, at the door."""

from __future__ import annotations

import pytest
from tests.places.stage import Stage

from linnet.core.ids import AuthorId
from linnet.core.reasons import Reason
from linnet.delivery.items import Ended
from linnet.places import subscriber
from linnet.places.channel.packet import Modifier, Packet
from linnet.places.items import Body, Changed, Knocked, Said
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
    stage.watch(5, methods=())
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
    stage.watch(1, methods=(), objects="_profile")
    stage.watch(2, methods=(), objects=None)
    stage.watch(3, methods=())
    number = stage.say(b"", modifiers=(Modifier("=", "_profile_city", b"Oslo"), Modifier("=", "_x", b"y")))
    city = Changed(stage.place, number, "_profile_city", b"Oslo")
    assert stage.take(1) == [city]
    assert stage.take(2) == []
    assert stage.take(3) == [city, Changed(stage.place, number, "_x", b"y")]
    assert stage.declined_watch(objects="no name").reason is Reason.MALFORMED


def test_requests_and_knocks_are_told_to_those_who_want_them() -> None:
    stage = Stage()
    subscribers = stage.places._places[stage.place].subscribers
    assert not subscribers.hears("_request_tea")
    stage.watch(1, methods=("_request",), door=False)
    stage.watch(2, methods=())
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
