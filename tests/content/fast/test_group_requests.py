"""Questions of groups end in an answer or a reason, and links are held for them."""

from __future__ import annotations

import pytest

from linnet.content.config import FastConfig
from linnet.content.fast.group_requests import PURPOSE, AnswerDue, GroupRequests, Leaving
from linnet.content.fast.messages import Conveyed, Parted, Quit
from linnet.core.effects import AfterCommit, CancelTimer, Hold, Send, SetTimer
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.machine.requests import Failed
from linnet.trace.records import Kind, Record

PEER, OTHER = PeerId(b"p" * 32), PeerId(b"o" * 32)
HINTS = ("tls://a:1",)
GROUP = TopicId(bytes(32))
TASK = Leaving(GROUP, PEER)
QUIT = Quit(1, GROUP)
TIMER = AnswerDue(1)


class Asked(GroupRequests):
    """Requests with an outbox of their own, of which one is open or none."""

    def __init__(self, *, hasty: bool | None = None, up: bool = True) -> None:
        self.out = Outbox()
        super().__init__(FastConfig(tries=3), self.out, lambda: self.out)
        if up:
            self.handle_link_up(PEER)
        if hasty is not None:
            self.ask_peer(Contact(PEER, HINTS), QUIT, TASK, hasty)
        self.out.clear()


def asked(*, hasty: bool = False) -> Asked:
    return Asked(hasty=hasty)


def failed(reason: Reason) -> Failed[Leaving]:
    return Failed(PEER, TASK, reason, QUIT)


def test_a_question_waits_for_a_link_and_is_asked_again_until_it_is_answered() -> None:
    requests = Asked(up=False)
    requests.ask_peer(Contact(PEER, HINTS), QUIT, TASK)
    assert requests.out.take() == [Hold(PEER, HINTS, PURPOSE), SetTimer(2.0, TIMER)]
    requests.handle_link_up(PEER)
    assert requests.out.take() == [Send(PEER, QUIT)]
    assert requests.handle_answer_due(TIMER) == ([], [])
    assert requests.out.take() == [Send(PEER, QUIT), SetTimer(4.0, TIMER)]
    assert requests.take_task(PEER, 1) == TASK
    assert requests.out.take() == [CancelTimer(TIMER)]
    assert requests.handle_answer_due(TIMER) == ([], [])
    assert requests.out.take() == []
    assert len(requests) == 0


def test_who_does_not_answer_is_named_in_the_end() -> None:
    requests = asked()
    assert requests.handle_answer_due(TIMER) == ([], [])
    assert requests.handle_answer_due(TIMER) == ([], [TASK]), "it was sent twice without a word"
    requests.out.clear()
    assert requests.handle_answer_due(TIMER) == ([failed(Reason.TIMEOUT)], [])
    assert requests.out.take() == [Record(Kind.DROPPED, peer=PEER, reason=Reason.TIMEOUT, note="Quit")]


def test_what_is_hasty_ends_with_its_link_and_the_rest_waits_for_another() -> None:
    hasty, patient = asked(hasty=True), asked()
    dropped = Record(Kind.DROPPED, peer=PEER, reason=Reason.CRASHED, note="Quit")
    assert hasty.handle_link_loss(PEER, Reason.CRASHED) == ([failed(Reason.CRASHED)], [])
    assert hasty.out.take() == [CancelTimer(TIMER), dropped]
    assert patient.handle_link_loss(PEER, Reason.CRASHED) == ([], [TASK])
    assert patient.out.take() == []
    patient.handle_link_up(PEER)
    assert patient.out.take() == [Send(PEER, QUIT)]
    idle = asked(hasty=True)
    assert idle.handle_link_loss(PEER, Reason.NOT_NEEDED) == ([], [])
    assert idle.out.take() == [], "nothing is wrong with it"
    idle.handle_link_up(PEER)
    assert idle.out.take() == [Send(PEER, QUIT)], "what was sent over the old link may be lost"


def test_answers_count_only_from_who_was_asked_and_once() -> None:
    requests = asked()
    for peer, number in ((OTHER, 1), (PEER, 2)):
        with pytest.raises(RemoteError) as caught:
            requests.take_task(peer, number)
        assert caught.value.reason is Reason.STALE
        with pytest.raises(RemoteError):
            requests.find_task(peer, number)
    assert requests.find_task(PEER, 1) == TASK
    requests.take_task(PEER, 1)
    with pytest.raises(RemoteError):
        requests.take_task(PEER, 1)


def test_what_nobody_wants_any_more_is_forgotten() -> None:
    requests = asked()
    requests.forget(PEER, TASK)
    assert (requests.out.take(), len(requests)) == ([CancelTimer(TIMER)], 0)


def test_an_answer_to_who_is_gone_is_dropped_with_a_word() -> None:
    requests = asked()
    requests.answer(PEER, Parted(7))
    assert requests.out.take() == [Send(PEER, Parted(7))]
    requests.answer(OTHER, Parted(7))
    assert requests.out.take() == [Record(Kind.DROPPED, peer=OTHER, reason=Reason.UNREACHABLE, note="Parted")]


def test_that_an_event_arrived_is_said_as_promises_are() -> None:
    out = Outbox()
    requests = GroupRequests(FastConfig(), out, lambda: out.committed)
    requests.handle_link_up(PEER)
    told = Conveyed(1, EventId(bytes(32)), None, True, False, (), None)
    requests.answer(PEER, told)
    requests.answer(PEER, Parted(7))
    assert out.take() == [AfterCommit((Send(PEER, told),)), Send(PEER, Parted(7))]
