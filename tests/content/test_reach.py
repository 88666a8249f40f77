"""Messages wait for links, within a bound."""

from __future__ import annotations

from linnet.content.config import ContentConfig
from linnet.content.messages import Held, Reached, Settled, SoFar, Subscribed, Taken
from linnet.content.reach import PURPOSE, Reach
from linnet.core.effects import AfterCommit, Hold, Release, Send
from linnet.core.ids import Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

PEER = PeerId(b"p" * 32)
CONTACT = Contact(PEER, ("tls://p:1",))
ONE, TWO, THREE = (Subscribed(number, None) for number in (1, 2, 3))


def dropped(reason: Reason) -> Record:
    return Record(Kind.DROPPED, peer=PEER, reason=reason, note="Subscribed")


def test_what_is_said_waits_for_a_link_that_is_held() -> None:
    out = Outbox()
    reach = Reach(ContentConfig(waiting=2), out)
    reach.send(CONTACT, ONE)
    assert out.take() == [Hold(PEER, CONTACT.hints, PURPOSE)]
    reach.send(CONTACT, TWO)
    assert out.take() == []
    reach.send(CONTACT, THREE)
    assert out.take() == [dropped(Reason.QUEUE_FULL)]
    reach.handle_link_up(PEER)
    assert out.take() == [Send(PEER, ONE), Send(PEER, TWO)]
    reach.send(CONTACT, THREE)
    assert out.take() == [Send(PEER, THREE)]
    reach.answer(PEER, ONE)
    assert out.take() == [Send(PEER, ONE)]


def test_where_there_is_no_link_nothing_is_lost_without_a_word() -> None:
    out = Outbox()
    reach = Reach(ContentConfig(), out)
    reach.answer(PEER, ONE)
    assert out.take() == [dropped(Reason.UNREACHABLE)]
    reach.send(CONTACT, ONE)
    out.clear()
    reach.handle_link_down(PEER, Reason.DIAL_TIMEOUT)
    assert out.take() == [Release(PEER, PURPOSE), dropped(Reason.DIAL_TIMEOUT)]
    reach.handle_link_down(PEER, Reason.DIAL_TIMEOUT)
    assert out.take() == []


def test_that_an_event_arrived_is_said_as_promises_are() -> None:
    out = Outbox()
    reach = Reach(ContentConfig(), out, lambda: out.committed)
    reach.handle_link_up(PEER)
    way = (EventId(bytes(32)), "stock")
    so_far = SoFar(1, 0, 0, 1, ())
    plain = (Taken(*way, None), Held(*way), ONE)
    arrivals = (Reached(*way, 1, 0), Settled(*way, 1, 0), Taken(*way, None, 1, so_far), Held(*way, so_far))
    for message in (*plain, *arrivals):
        reach.answer(PEER, message)
    assert out.take() == [
        *(Send(PEER, message) for message in plain),
        *(AfterCommit((Send(PEER, message),)) for message in arrivals),
    ]


def test_links_that_are_not_needed_are_let_go() -> None:
    out = Outbox()
    reach = Reach(ContentConfig(), out)
    reach.send(CONTACT, ONE)
    out.clear()
    reach.release_idle({})
    assert out.take() == []
    reach.handle_link_up(PEER)
    out.clear()
    reach.release_idle({PEER: None})
    assert out.take() == []
    reach.release_idle({})
    assert out.take() == [Release(PEER, PURPOSE)]
