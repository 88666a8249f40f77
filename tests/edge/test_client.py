"""The mobile side: which proxies it uses, what it asks of them, what it tells the streams above."""

from __future__ import annotations

from tests.edge.stands import AUTHOR, DEVICE, Stands, topic

from linnet.core.effects import AfterCommit, CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.messages import ChainPlace
from linnet.edge.client import EdgeClient
from linnet.edge.effects import ClientEffect, Reached
from linnet.edge.messages import Answer, Serve, Served, Taken, Unserve, Wanted
from linnet.edge.proxy_config import EdgeConfig
from linnet.overlay.notices import JoinRefused, NeighborDown, StorageKnown
from linnet.trace.records import Kind, Record

Q0, Q1 = Contact(PeerId(b"0" * 32), ("tls://q0:1",)), Contact(PeerId(b"1" * 32), ("tls://q1:1",))
TEA, RAIN = topic("tea"), topic("rain")
TAKEN, FAILOVER, RETRY = Tick("edge", "taken"), Tick("edge", "failover"), Tick("edge", "retry")
HOLD0, HOLD1 = (Hold(each.peer, each.hints, "proxy") for each in (Q0, Q1))
LATER = SetTimer(3.0, FAILOVER)
CALM = CancelTimer(FAILOVER)


def ask(contact: Contact) -> Tick:
    return Tick("edge", "ask", contact.peer)


def serve(contact: Contact, request: int, stands: Stands, *names: str) -> list[ClientEffect]:
    wanted = tuple(Wanted(name, stands.digest(topic(name)) or bytes(16)) for name in names)
    return [Send(contact.peer, Serve(request, wanted)), SetTimer(5.0, ask(contact))]


def served(request: int, *answers: Answer) -> Served:
    return Served(request, answers, 10, 1000, 100)


YES, SAME, NO = Answer(None, False), Answer(None, True), Answer(Reason.NOT_ALLOWED, False)


def client_of(stands: Stands, at_once: int = 1) -> EdgeClient:
    return EdgeClient(EdgeConfig(proxies=(Q0, Q1), at_once=at_once), stands)


def test_it_turns_to_the_first_and_asks_when_the_link_is_there() -> None:
    stands = Stands(tea=3)
    client = client_of(stands)
    assert client.start(0.0) == [HOLD0, LATER, SetTimer(15.0, TAKEN)]
    assert client.join(TEA, "tea") == [StorageKnown(TEA, (Q0,))]
    assert client.join(TEA, "tea") == []
    assert client.link_up(Q0.peer) == [*serve(Q0, 1, stands, "tea"), CALM]
    assert client.served(Q0.peer, served(1, YES)) == [
        CancelTimer(ask(Q0)),
        Reached(TEA, Q0.peer, False),
        CALM,
    ]
    assert client.join(RAIN, "rain") == [*serve(Q0, 2, stands, "rain"), StorageKnown(RAIN, (Q0,))]
    assert client.used == (Q0.peer,)


def test_a_proxy_that_goes_is_waited_for_and_then_another_has_its_place() -> None:
    stands = Stands(tea=3)
    client = client_of(stands)
    client.start(0.0)
    client.join(TEA, "tea")
    client.link_up(Q0.peer)
    client.served(Q0.peer, served(1, YES))
    assert client.link_down(Q0.peer, Reason.LOST) == [
        NeighborDown(TEA, Q0.peer),
        CancelTimer(ask(Q0)),
        LATER,
    ]
    assert client.fired(FAILOVER) == [
        Record(Kind.CONTROL, peer=Q1.peer, note="turned to another proxy"),
        HOLD1,
        StorageKnown(TEA, (Q0, Q1)),
    ]
    assert client.link_up(Q1.peer) == [
        *serve(Q1, 2, stands, "tea"),
        CALM,
        CancelTimer(ask(Q0)),
        Release(Q0.peer, "proxy"),
        StorageKnown(TEA, (Q1,)),
    ]
    assert client.served(Q1.peer, served(2, SAME))[1] == Reached(TEA, Q1.peer, True)


def test_one_that_does_not_answer_at_all_is_not_waited_for() -> None:
    client = client_of(Stands())
    client.start(0.0)
    turned = Record(Kind.CONTROL, peer=Q1.peer, note="turned to another proxy")
    assert client.dial_failed(Q0.peer, Reason.UNREACHABLE) == [turned, HOLD1]
    assert client.dial_failed(Q0.peer, Reason.UNREACHABLE) == []
    assert [status.last_failure for status in client.status()] == [Reason.UNREACHABLE, None]


def test_one_that_knows_nothing_of_proxies_is_passed_over() -> None:
    client = client_of(Stands())
    client.start(0.0)
    unfit = Record(Kind.REJECTED, peer=Q0.peer, reason=Reason.UNSUPPORTED, note="it knows nothing of proxies")
    assert client.link_up(Q0.peer, is_fit=False)[0] == unfit
    assert client.used == (Q0.peer, Q1.peer)


def test_what_one_refuses_is_asked_of_another_and_again_later() -> None:
    stands = Stands(tea=3)
    client = client_of(stands)
    client.start(0.0)
    client.join(TEA, "tea")
    client.link_up(Q0.peer)
    note = "tea: the proxy does not serve it"
    assert client.served(Q0.peer, served(1, NO)) == [
        CancelTimer(ask(Q0)),
        Record(Kind.REJECTED, TEA, peer=Q0.peer, reason=Reason.NOT_ALLOWED, note=note),
        SetTimer(60.0, RETRY),
        JoinRefused(TEA, Reason.NOT_ALLOWED),
        StorageKnown(TEA, ()),
        LATER,
    ]
    assert client.status()[0].refusals == (("tea", Reason.NOT_ALLOWED),)
    assert HOLD1 in client.fired(FAILOVER)
    assert client.link_up(Q1.peer)[:2] == serve(Q1, 2, stands, "tea")
    assert client.used == (Q0.peer, Q1.peer)
    assert client.fired(RETRY) == serve(Q0, 3, stands, "tea")


def test_a_lost_question_is_asked_again() -> None:
    stands = Stands(tea=3)
    client = client_of(stands)
    client.start(0.0)
    client.join(TEA, "tea")
    client.link_up(Q0.peer)
    assert client.fired(ask(Q0)) == serve(Q0, 2, stands, "tea")
    stale = Record(Kind.REJECTED, peer=Q0.peer, reason=Reason.STALE, note="served")
    assert client.served(Q0.peer, served(1, YES)) == [stale]
    malformed = Record(Kind.REJECTED, peer=Q0.peer, reason=Reason.MALFORMED, note="served")
    assert client.served(Q0.peer, served(2, YES, YES)) == [malformed]


def test_two_at_once_are_both_neighbours() -> None:
    stands = Stands(tea=3)
    client = client_of(stands, at_once=2)
    assert client.start(0.0)[:2] == [HOLD0, HOLD1]
    assert client.join(TEA, "tea") == [StorageKnown(TEA, (Q0, Q1))]
    client.link_up(Q0.peer)
    client.link_up(Q1.peer)
    assert Reached(TEA, Q0.peer, False) in client.served(Q0.peer, served(1, YES))
    assert Reached(TEA, Q1.peer, False) in client.served(Q1.peer, served(2, YES))
    assert client.link_down(Q0.peer, Reason.LOST) == [NeighborDown(TEA, Q0.peer), CancelTimer(ask(Q0))]


def test_leaving_is_told_at_once_or_when_the_proxy_is_back() -> None:
    client = client_of(Stands(tea=3, rain=0))
    client.start(0.0)
    for name in ("tea", "rain"):
        client.join(topic(name), name)
    client.link_up(Q0.peer)
    client.served(Q0.peer, served(1, YES, YES))
    assert client.leave(TEA, keep=True) == [
        Send(Q0.peer, Unserve("tea", True)),
        NeighborDown(TEA, Q0.peer),
    ]
    client.link_down(Q0.peer, Reason.LOST)
    assert client.leave(RAIN, keep=False) == []
    assert client.link_up(Q0.peer) == [Send(Q0.peer, Unserve("rain", False)), CALM]


def test_a_node_that_stops_leaves_without_a_word_and_its_streams_stay_kept() -> None:
    client = client_of(Stands(tea=3))
    client.start(0.0)
    client.join(TEA, "tea")
    client.link_up(Q0.peer)
    client.served(Q0.peer, served(1, YES))
    page = Taken(TEA, (ChainPlace(AUTHOR, DEVICE, 0, 3, False),))
    assert client.stop() == [AfterCommit((Send(Q0.peer, page),))]
    assert client.leave(TEA, keep=False) == []


def test_what_has_arrived_is_told_once_and_where_it_is_quiet_the_proxy_is_asked_once() -> None:
    stands = Stands(tea=3)
    client = client_of(stands)
    client.start(0.0)
    client.join(TEA, "tea")
    client.link_up(Q0.peer)
    client.served(Q0.peer, served(1, YES))
    again = SetTimer(15.0, TAKEN)
    page = Taken(TEA, (ChainPlace(AUTHOR, DEVICE, 0, 3, False),))
    assert client.fired(TAKEN) == [AfterCommit((Send(Q0.peer, page),)), again]
    stands.last[TEA] = 5
    page = Taken(TEA, (ChainPlace(AUTHOR, DEVICE, 0, 5, False),))
    assert client.fired(TAKEN) == [AfterCommit((Send(Q0.peer, page),)), again]
    assert client.fired(TAKEN) == [*serve(Q0, 2, stands, "tea"), again]
    client.served(Q0.peer, served(2, SAME))
    assert client.fired(TAKEN) == [again]
    assert client.tell_taken() == []
