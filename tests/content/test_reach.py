"""Messages wait for links, within a bound."""

from __future__ import annotations

from linnet.content.config import ContentConfig
from linnet.content.effects import PURPOSE
from linnet.content.messages import Subscribed
from linnet.content.reach import Reach
from linnet.core.effects import Hold, Release, Send
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.trace.records import Kind, Record

PEER = PeerId(b"p" * 32)
CONTACT = Contact(PEER, ("tls://p:1",))
ONE, TWO, THREE = (Subscribed(number, None) for number in (1, 2, 3))


def dropped(reason: Reason) -> Record:
    return Record(Kind.DROPPED, peer=PEER, reason=reason, note="Subscribed")


def test_what_is_said_waits_for_a_link_that_is_held() -> None:
    reach = Reach(ContentConfig(waiting=2))
    assert reach.say(CONTACT, ONE) == [Hold(PEER, CONTACT.hints, PURPOSE)]
    assert reach.say(CONTACT, TWO) == []
    assert reach.say(CONTACT, THREE) == [dropped(Reason.QUEUE_FULL)]
    assert reach.link_up(PEER) == [Send(PEER, ONE), Send(PEER, TWO)]
    assert reach.say(CONTACT, THREE) == [Send(PEER, THREE)]
    assert reach.answer(PEER, ONE) == [Send(PEER, ONE)]


def test_where_there_is_no_link_nothing_is_lost_without_a_word() -> None:
    reach = Reach(ContentConfig())
    assert reach.answer(PEER, ONE) == [dropped(Reason.UNREACHABLE)]
    reach.say(CONTACT, ONE)
    assert reach.gone(PEER, Reason.DIAL_TIMEOUT) == [Release(PEER, PURPOSE), dropped(Reason.DIAL_TIMEOUT)]
    assert reach.gone(PEER, Reason.DIAL_TIMEOUT) == []


def test_links_that_are_not_needed_are_let_go() -> None:
    reach = Reach(ContentConfig())
    reach.say(CONTACT, ONE)
    assert reach.keep({}) == []
    reach.link_up(PEER)
    assert reach.keep({PEER: None}) == []
    assert reach.keep({}) == [Release(PEER, PURPOSE)]
