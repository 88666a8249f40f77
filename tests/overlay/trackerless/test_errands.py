"""Questions end in an answer or a failure; messages are sent or fail."""

from __future__ import annotations

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import PeerId
from linnet.core.timers import Tick
from linnet.overlay.trackerless.errands import OWNER, Errand, Errands
from linnet.overlay.trackerless.messages import Intersect, RingAsk, Sought

PEER = PeerId(bytes([7]) * 32)
HINTS = ("tls://h:1",)
ASK = RingAsk(1, ())
OFFER = Intersect(bytes(16), 0, ())
TOLD = Sought(bytes(16), b"x")


def test_a_question_is_asked_once_its_link_is_open_and_lets_go_when_it_is_answered() -> None:
    links: dict[PeerId, None] = {}
    errands = Errands(3.0, links)
    tick = Tick(OWNER, "RingAsk", PEER)
    assert errands.ask(PEER, HINTS, ASK) == [Hold(PEER, HINTS, "gossip RingAsk"), SetTimer(9.0, tick)]
    assert errands.ask(PEER, HINTS, RingAsk(2, ())) == []
    links[PEER] = None
    assert errands.linked(PEER) == [Send(PEER, ASK), SetTimer(3.0, tick)]
    assert errands.asked(PEER, RingAsk)
    assert errands.answered(PEER, RingAsk) == [CancelTimer(tick), Release(PEER, "gossip RingAsk")]
    assert errands.answered(PEER, RingAsk) == []
    assert PEER not in errands


def test_over_a_link_that_is_there_it_is_asked_at_once_and_fails_in_time() -> None:
    errands = Errands(3.0, {PEER: None})
    tick = Tick(OWNER, "RingAsk", PEER)
    assert errands.ask(PEER, HINTS, ASK) == [
        Hold(PEER, HINTS, "gossip RingAsk"),
        Send(PEER, ASK),
        SetTimer(3.0, tick),
    ]
    assert errands.overdue(tick) == ([Errand(PEER, ASK)], [Release(PEER, "gossip RingAsk")])
    assert errands.overdue(tick) == ([], [])


def test_all_that_was_asked_on_a_link_fails_with_it() -> None:
    errands = Errands(3.0, {PEER: None})
    errands.ask(PEER, HINTS, ASK)
    errands.ask(PEER, HINTS, OFFER)
    failed, effects = errands.lost(PEER)
    assert [errand.message for errand in failed] == [ASK, OFFER]
    assert [effect for effect in effects if isinstance(effect, Release)] == [
        Release(PEER, "gossip RingAsk"),
        Release(PEER, "gossip Intersect"),
    ]
    assert errands.lost(PEER) == ([], [])


def test_a_message_waits_for_its_link_and_lets_go_once_it_is_sent() -> None:
    links: dict[PeerId, None] = {}
    errands = Errands(3.0, links)
    tick = Tick(OWNER, "telling", PEER)
    assert errands.tell(PEER, HINTS, TOLD) == [Hold(PEER, HINTS, "telling"), SetTimer(9.0, tick)]
    assert errands.tell(PEER, HINTS, TOLD) == []
    links[PEER] = None
    assert errands.linked(PEER) == [
        Send(PEER, TOLD),
        Send(PEER, TOLD),
        CancelTimer(tick),
        Release(PEER, "telling"),
    ]
    assert errands.tell(PEER, HINTS, TOLD) == [Send(PEER, TOLD)]


def test_messages_whose_link_does_not_come_fail_and_only_so_many_wait() -> None:
    errands = Errands(3.0, {})
    tick = Tick(OWNER, "telling", PEER)
    for _ in range(64):
        assert errands.tell(PEER, HINTS, TOLD) is not None
    assert errands.tell(PEER, HINTS, TOLD) is None
    failed, effects = errands.overdue(tick)
    assert (len(failed), effects) == (64, [Release(PEER, "telling")])
    errands.tell(PEER, HINTS, TOLD)
    assert errands.lost(PEER) == ([Errand(PEER, TOLD)], [CancelTimer(tick), Release(PEER, "telling")])
