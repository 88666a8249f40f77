"""Questions end in an answer or a failure; messages are sent or fail."""

from __future__ import annotations

from tests.overlay.harness import said

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import PeerId
from linnet.machine.outbox import Outbox
from linnet.overlay.gossip.messages import Intersect, RingAsk, Sought
from linnet.overlay.gossip.requests import GossipRequests, QuestionDue, Request, TellingDue

PEER = PeerId(bytes([7]) * 32)
HINTS = ("tls://h:1",)
ASK = RingAsk(1, ())
OFFER = Intersect(bytes(16), 0, ())
TOLD = Sought(bytes(16), b"x")


def test_a_question_is_asked_once_its_link_is_open_and_lets_go_when_it_is_answered() -> None:
    links: dict[PeerId, None] = {}
    out = Outbox()
    errands = GossipRequests(3.0, links, out)
    timer = QuestionDue(PEER, "RingAsk")
    assert said(out, errands.ask_peer, PEER, HINTS, ASK) == [
        Hold(PEER, HINTS, "gossip RingAsk"),
        SetTimer(9.0, timer),
    ]
    assert said(out, errands.ask_peer, PEER, HINTS, RingAsk(2, ())) == []
    links[PEER] = None
    assert said(out, errands.handle_link_up, PEER) == [Send(PEER, ASK), SetTimer(3.0, timer)]
    assert errands.is_asked(PEER, RingAsk)
    assert said(out, errands.handle_answer, PEER, RingAsk) == [
        CancelTimer(timer),
        Release(PEER, "gossip RingAsk"),
    ]
    assert said(out, errands.handle_answer, PEER, RingAsk) == []
    assert PEER not in errands


def test_over_a_link_that_is_there_it_is_asked_at_once_and_fails_in_time() -> None:
    out = Outbox()
    errands = GossipRequests(3.0, {PEER: None}, out)
    timer = QuestionDue(PEER, "RingAsk")
    assert said(out, errands.ask_peer, PEER, HINTS, ASK) == [
        Hold(PEER, HINTS, "gossip RingAsk"),
        Send(PEER, ASK),
        SetTimer(3.0, timer),
    ]
    out.clear()
    assert errands.end_question(PEER, "RingAsk") == [Request(PEER, ASK)]
    assert out.take() == [Release(PEER, "gossip RingAsk")]
    assert errands.end_question(PEER, "RingAsk") == []
    assert out.take() == []


def test_all_that_was_asked_on_a_link_fails_with_it() -> None:
    out = Outbox()
    errands = GossipRequests(3.0, {PEER: None}, out)
    errands.ask_peer(PEER, HINTS, ASK)
    errands.ask_peer(PEER, HINTS, OFFER)
    out.clear()
    failed, effects = errands.handle_link_down(PEER), out.take()
    assert [errand.message for errand in failed] == [ASK, OFFER]
    assert [effect for effect in effects if isinstance(effect, Release)] == [
        Release(PEER, "gossip RingAsk"),
        Release(PEER, "gossip Intersect"),
    ]
    assert (errands.handle_link_down(PEER), out.take()) == ([], [])


def test_a_message_waits_for_its_link_and_lets_go_once_it_is_sent() -> None:
    links: dict[PeerId, None] = {}
    out = Outbox()
    errands = GossipRequests(3.0, links, out)
    timer = TellingDue(PEER)
    assert said(out, errands.tell_peer, PEER, HINTS, TOLD) == [
        Hold(PEER, HINTS, "telling"),
        SetTimer(9.0, timer),
    ]
    assert said(out, errands.tell_peer, PEER, HINTS, TOLD) == []
    links[PEER] = None
    assert said(out, errands.handle_link_up, PEER) == [
        Send(PEER, TOLD),
        Send(PEER, TOLD),
        CancelTimer(timer),
        Release(PEER, "telling"),
    ]
    assert said(out, errands.tell_peer, PEER, HINTS, TOLD) == [Send(PEER, TOLD)]


def test_messages_whose_link_does_not_come_fail_and_only_so_many_wait() -> None:
    out = Outbox()
    errands = GossipRequests(3.0, {}, out)
    timer = TellingDue(PEER)
    for _ in range(64):
        assert errands.tell_peer(PEER, HINTS, TOLD)
    assert not errands.tell_peer(PEER, HINTS, TOLD)
    out.clear()
    failed, effects = errands.end_telling(PEER), out.take()
    assert (len(failed), effects) == (64, [Release(PEER, "telling")])
    errands.tell_peer(PEER, HINTS, TOLD)
    out.clear()
    assert errands.handle_link_down(PEER) == [Request(PEER, TOLD)]
    assert out.take() == [CancelTimer(timer), Release(PEER, "telling")]
