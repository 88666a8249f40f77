"""Questions end in an answer or a reason, and links are held for them."""

from __future__ import annotations

import pytest

from linnet.content.fast.calls import Calls
from linnet.content.fast.config import FastConfig
from linnet.content.fast.effects import OWNER, PURPOSE
from linnet.content.fast.messages import Parted, Quit
from linnet.content.fast.tasks import Leaving
from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.trace.records import Kind, Record

PEER, OTHER = PeerId(b"p" * 32), PeerId(b"o" * 32)
HINTS = ("tls://a:1",)
GROUP = TopicId(bytes(32))
TASK = Leaving(GROUP, PEER)
QUIT = Quit(1, GROUP)
TIMER = Tick(OWNER, "call", (1).to_bytes(8))


def asked(*, hasty: bool = False, up: bool = True) -> Calls:
    calls = Calls(FastConfig(tries=3))
    if up:
        calls.link_up(PEER, HINTS)
    calls.ask(calls.next_number(), Contact(PEER, HINTS), QUIT, TASK, hasty)
    return calls


def test_a_question_waits_for_a_link_and_is_asked_again_until_it_is_answered() -> None:
    calls = Calls(FastConfig(tries=3))
    number = calls.next_number()
    assert calls.ask(number, Contact(PEER, HINTS), QUIT, TASK) == [
        Hold(PEER, HINTS, PURPOSE),
        SetTimer(2.0, TIMER),
    ]
    assert calls.link_up(PEER, HINTS) == [Send(PEER, QUIT)]
    assert calls.fired(TIMER) == [Send(PEER, QUIT), SetTimer(4.0, TIMER)]
    assert calls.answered(PEER, 1) == (TASK, CancelTimer(TIMER))
    assert calls.fired(TIMER) == []
    assert len(calls) == 0


def test_who_does_not_answer_is_named_in_the_end() -> None:
    calls = asked()
    for _ in range(2):
        assert calls.failed == []
        calls.fired(TIMER)
    assert calls.fired(TIMER) == [Record(Kind.DROPPED, peer=PEER, reason=Reason.TIMEOUT, note="Quit")]
    assert calls.failed == [(TASK, Reason.TIMEOUT)]


def test_what_is_hasty_ends_with_its_link_and_the_rest_waits_for_another() -> None:
    hasty, patient = asked(hasty=True), asked()
    dropped = Record(Kind.DROPPED, peer=PEER, reason=Reason.CRASHED, note="Quit")
    assert hasty.gone(PEER, Reason.CRASHED) == [CancelTimer(TIMER), dropped]
    assert hasty.failed == [(TASK, Reason.CRASHED)]
    assert patient.gone(PEER, Reason.CRASHED) == []
    assert patient.link_up(PEER, HINTS) == [Send(PEER, QUIT)]
    idle = asked(hasty=True)
    assert idle.gone(PEER, Reason.NOT_NEEDED) == [], "nothing is wrong with it"


def test_answers_count_only_from_who_was_asked_and_once() -> None:
    calls = asked()
    for peer, number in ((OTHER, 1), (PEER, 2)):
        with pytest.raises(RemoteError) as caught:
            calls.answered(peer, number)
        assert caught.value.reason is Reason.STALE
        with pytest.raises(RemoteError):
            calls.pending(peer, number)
    assert calls.pending(PEER, 1) == TASK
    calls.answered(PEER, 1)
    with pytest.raises(RemoteError):
        calls.answered(PEER, 1)


def test_who_is_at_it_is_given_time_and_then_asked_again() -> None:
    calls = asked()
    assert calls.extend(1, 20.0) == [SetTimer(20.0, TIMER)]
    assert calls.fired(TIMER) == [Send(PEER, QUIT), SetTimer(4.0, TIMER)]


def test_links_are_let_go_when_nothing_needs_them() -> None:
    calls = asked()
    assert calls.release_idle({}) == [], "a question is open"
    assert calls.withdraw(PEER, {TASK: None}) == [CancelTimer(TIMER)]
    assert calls.release_idle({PEER: None}) == []
    assert calls.release_idle({}) == [Release(PEER, PURPOSE)]


def test_an_answer_to_who_is_gone_is_dropped_with_a_word() -> None:
    calls = asked()
    assert calls.answer(PEER, Parted(7)) == [Send(PEER, Parted(7))]
    assert calls.answer(OTHER, Parted(7)) == [
        Record(Kind.DROPPED, peer=OTHER, reason=Reason.UNREACHABLE, note="Parted")
    ]
