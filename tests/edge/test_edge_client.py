"""The mobile side: which proxies it uses, what it asks of them, what it tells the streams above."""

from __future__ import annotations

from tests.edge import stands as staged
from tests.edge.stands import AUTHOR, DEVICE, Stands, topic

from linnet.core.effects import AfterCommit, CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.messages import ChainPlace
from linnet.edge.config import EdgeConfig
from linnet.edge.edge_client import AnswerDue, EdgeClient, FailoverDue, RetryDue, TakenDue
from linnet.edge.messages import Answer, Serve, Served, Taken, Unserve, Wanted
from linnet.edge.notices import Reached, ServiceAsked
from linnet.machine.outbox import Effect, Notice, Outbox
from linnet.overlay.notices import JoinRefused, NeighborDown, StorageKnown
from linnet.trace.records import Kind, Record

Q0, Q1 = Contact(PeerId(b"0" * 32), ("tls://q0:1",)), Contact(PeerId(b"1" * 32), ("tls://q1:1",))
TEA, RAIN = topic("tea"), topic("rain")
TAKEN, FAILOVER, RETRY = TakenDue(), FailoverDue(), RetryDue()
HOLD0, HOLD1 = (Hold(each.peer, each.hints, "proxy") for each in (Q0, Q1))
LATER = SetTimer(3.0, FAILOVER)
CALM = CancelTimer(FAILOVER)


def ask(contact: Contact) -> AnswerDue:
    return AnswerDue(contact.peer)


def told(out: Outbox) -> list[Effect | Notice]:
    """What was asked for and told, without who was asked to serve: that has a test of its own."""
    return [each for each in staged.told(out) if not isinstance(each, ServiceAsked)]


def serve(contact: Contact, request: int, stands: Stands, *names: str) -> list[Effect | Notice]:
    wanted = tuple(Wanted(name, stands.digest(topic(name)) or bytes(16)) for name in names)
    return [Send(contact.peer, Serve(request, wanted)), SetTimer(5.0, ask(contact))]


def served(request: int, *answers: Answer) -> Served:
    return Served(request, answers, 10, 1000, 100)


YES, SAME, NO = Answer(None, False), Answer(None, True), Answer(Reason.NOT_ALLOWED, False)


def client_of(stands: Stands, at_once: int = 1) -> tuple[EdgeClient, Outbox]:
    out = Outbox()
    return EdgeClient(EdgeConfig(proxies=(Q0, Q1), at_once=at_once), stands, out), out


def asking(stands: Stands, *names: str) -> tuple[EdgeClient, Outbox]:
    """A client that has asked its first proxy for streams."""
    client, out = client_of(stands)
    client.start()
    for name in names:
        client.want_stream(topic(name), name)
    client.handle_link_up(Q0.peer)
    told(out)
    return client, out


def served_by(stands: Stands, *names: str) -> tuple[EdgeClient, Outbox]:
    """A client that is served streams by its first proxy."""
    client, out = asking(stands, *names)
    client.handle_served(Q0.peer, served(1, *(YES for _ in names)))
    told(out)
    return client, out


def test_it_is_told_what_a_proxy_knows_from_when_it_is_asked() -> None:
    client, out = client_of(Stands(tea=3))
    client.start()
    client.want_stream(TEA, "tea")
    assert out.take_notices() == []
    client.handle_link_up(Q0.peer)
    assert out.take_notices() == [ServiceAsked(Q0.peer, (TEA,))]


def test_it_turns_to_the_first_and_asks_when_the_link_is_there() -> None:
    stands = Stands(tea=3)
    client, out = client_of(stands)
    client.start()
    assert told(out) == [HOLD0, LATER, SetTimer(15.0, TAKEN)]
    assert client.want_stream(TEA, "tea") == StorageKnown(TEA, (Q0,))
    assert client.want_stream(TEA, "tea") is None
    assert told(out) == []
    client.handle_link_up(Q0.peer)
    assert told(out) == [*serve(Q0, 1, stands, "tea"), CALM]
    client.handle_served(Q0.peer, served(1, YES))
    assert told(out) == [CancelTimer(ask(Q0)), CALM, Reached(TEA, Q0.peer, False)]
    assert client.want_stream(RAIN, "rain") == StorageKnown(RAIN, (Q0,))
    assert told(out) == serve(Q0, 2, stands, "rain")
    assert client.used_proxies == (Q0.peer,)


def test_a_proxy_that_goes_is_waited_for_and_then_another_has_its_place() -> None:
    stands = Stands(tea=3)
    client, out = served_by(stands, "tea")
    client.handle_link_down(Q0.peer, Reason.LOST)
    assert told(out) == [CancelTimer(ask(Q0)), LATER, NeighborDown(TEA, Q0.peer)]
    client.stand_in()
    assert told(out) == [
        Record(Kind.CONTROL, peer=Q1.peer, note="turned to another proxy"),
        HOLD1,
        StorageKnown(TEA, (Q0, Q1)),
    ]
    client.handle_link_up(Q1.peer)
    assert told(out) == [
        *serve(Q1, 2, stands, "tea"),
        CALM,
        CancelTimer(ask(Q0)),
        Release(Q0.peer, "proxy"),
        StorageKnown(TEA, (Q1,)),
    ]
    client.handle_served(Q1.peer, served(2, SAME))
    assert out.take_notices() == [Reached(TEA, Q1.peer, True)]


def test_one_that_does_not_answer_at_all_is_not_waited_for() -> None:
    client, out = client_of(Stands())
    client.start()
    told(out)
    client.handle_dial_failed(Q0.peer, Reason.UNREACHABLE)
    assert told(out) == [Record(Kind.CONTROL, peer=Q1.peer, note="turned to another proxy"), HOLD1]
    client.handle_dial_failed(Q0.peer, Reason.UNREACHABLE)
    assert told(out) == []
    assert [status.last_failure for status in client.status()] == [Reason.UNREACHABLE, None]


def test_one_that_knows_nothing_of_proxies_is_passed_over() -> None:
    client, out = client_of(Stands())
    client.start()
    told(out)
    client.handle_link_up(Q0.peer, is_fit=False)
    unfit = Record(Kind.REJECTED, peer=Q0.peer, reason=Reason.UNSUPPORTED, note="it knows nothing of proxies")
    assert told(out)[0] == unfit
    assert client.used_proxies == (Q0.peer, Q1.peer)


def test_what_one_refuses_is_asked_of_another_and_again_later() -> None:
    stands = Stands(tea=3)
    client, out = asking(stands, "tea")
    client.handle_served(Q0.peer, served(1, NO))
    note = "tea: the proxy does not serve it"
    assert told(out) == [
        CancelTimer(ask(Q0)),
        Record(Kind.REJECTED, TEA, peer=Q0.peer, reason=Reason.NOT_ALLOWED, note=note),
        SetTimer(60.0, RETRY),
        LATER,
        JoinRefused(TEA, Reason.NOT_ALLOWED),
        StorageKnown(TEA, ()),
    ]
    assert client.status()[0].refusals == (("tea", Reason.NOT_ALLOWED),)
    client.stand_in()
    assert HOLD1 in told(out)
    client.handle_link_up(Q1.peer)
    assert told(out)[:2] == serve(Q1, 2, stands, "tea")
    assert client.used_proxies == (Q0.peer, Q1.peer)
    client.ask_refused()
    assert told(out) == serve(Q0, 3, stands, "tea")


def test_a_lost_question_is_asked_again() -> None:
    stands = Stands(tea=3)
    client, out = asking(stands, "tea")
    client.ask_again(Q0.peer)
    assert told(out) == serve(Q0, 2, stands, "tea")
    client.handle_served(Q0.peer, served(1, YES))
    assert told(out) == [Record(Kind.REJECTED, peer=Q0.peer, reason=Reason.STALE, note="served")]
    client.handle_served(Q0.peer, served(2, YES, YES))
    assert told(out) == [Record(Kind.REJECTED, peer=Q0.peer, reason=Reason.MALFORMED, note="served")]


def test_two_at_once_are_both_neighbours() -> None:
    client, out = client_of(Stands(tea=3), at_once=2)
    client.start()
    assert told(out)[:2] == [HOLD0, HOLD1]
    assert client.want_stream(TEA, "tea") == StorageKnown(TEA, (Q0, Q1))
    client.handle_link_up(Q0.peer)
    client.handle_link_up(Q1.peer)
    assert out.take_notices() == [ServiceAsked(Q0.peer, (TEA,)), ServiceAsked(Q1.peer, (TEA,))]
    client.handle_served(Q0.peer, served(1, YES))
    client.handle_served(Q1.peer, served(2, YES))
    assert out.take_notices() == [Reached(TEA, Q0.peer, False), Reached(TEA, Q1.peer, False)]
    out.take()
    client.handle_link_down(Q0.peer, Reason.LOST)
    assert told(out) == [CancelTimer(ask(Q0)), NeighborDown(TEA, Q0.peer)]


def test_leaving_is_told_at_once_or_when_the_proxy_is_back() -> None:
    client, out = served_by(Stands(tea=3, rain=0), "tea", "rain")
    assert client.drop_stream(TEA, keep=True) == [NeighborDown(TEA, Q0.peer)]
    assert told(out) == [Send(Q0.peer, Unserve("tea", True))]
    client.handle_link_down(Q0.peer, Reason.LOST)
    told(out)
    assert client.drop_stream(RAIN, keep=False) == []
    assert told(out) == []
    client.handle_link_up(Q0.peer)
    assert told(out) == [Send(Q0.peer, Unserve("rain", False)), CALM]


def test_a_node_that_stops_leaves_without_a_word_and_its_streams_stay_kept() -> None:
    client, out = served_by(Stands(tea=3), "tea")
    client.stop()
    page = Taken(TEA, (ChainPlace(AUTHOR, DEVICE, 0, 3, False),))
    assert told(out) == [AfterCommit((Send(Q0.peer, page),))]
    assert client.drop_stream(TEA, keep=False) == []
    assert told(out) == []


def test_what_has_arrived_is_told_once_and_where_it_is_quiet_the_proxy_is_asked_once() -> None:
    stands = Stands(tea=3)
    client, out = served_by(stands, "tea")
    again = SetTimer(15.0, TAKEN)
    client.compare_streams()
    page = Taken(TEA, (ChainPlace(AUTHOR, DEVICE, 0, 3, False),))
    assert told(out) == [AfterCommit((Send(Q0.peer, page),)), again]
    stands.last[TEA] = 5
    client.compare_streams()
    page = Taken(TEA, (ChainPlace(AUTHOR, DEVICE, 0, 5, False),))
    assert told(out) == [AfterCommit((Send(Q0.peer, page),)), again]
    client.compare_streams()
    assert told(out) == [*serve(Q0, 2, stands, "tea"), again]
    client.handle_served(Q0.peer, served(2, SAME))
    told(out)
    client.compare_streams()
    assert told(out) == [again]
    client.tell_taken()
    assert told(out) == []
