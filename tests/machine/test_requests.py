"""Requests to peers: each ends once, in an answer or in a failure, and its link is held meanwhile."""

from __future__ import annotations

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, PeerId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.machine.requests import Failed, Requests, Retry

A, B = Contact(PeerId(b"a" * 32), ("tls://a:1",)), Contact(PeerId(b"b" * 32), ("tls://b:1",))
ONCE = Retry(4.0)
THRICE = Retry(4.0, tries=3)
LASTING = Retry(4.0, tries=2, survives_link=True)


class Question(Message, frozen=True, tag=1):
    """What is asked."""

    request: int


class AnswerDue(Timer, frozen=True):
    """It took too long."""

    request: int


class Desk:
    """Requests for words, with the outbox they share."""

    def __init__(self, keeps_links: bool = False) -> None:
        self.out = Outbox()
        self.requests: Requests[str] = Requests("tea", AnswerDue, self.out, keeps_links)

    def ask(self, contact: Contact, word: str, retry: Retry = ONCE, is_linked: bool = True) -> int:
        number = self.requests.next_number()
        self.requests.ask(number, contact, Question(number), word, retry, is_linked)
        return number


def test_on_a_link_a_request_is_sent_at_once_and_its_answer_ends_it_once() -> None:
    desk = Desk()
    assert desk.ask(A, "one") == 1
    assert desk.out.take() == [
        Hold(A.peer, A.hints, "tea"),
        Send(A.peer, Question(1)),
        SetTimer(4.0, AnswerDue(1)),
    ]
    assert len(desk.requests) == 1
    assert desk.requests.context(A.peer, 1) == "one"
    assert desk.requests.handle_answer(A.peer, 1) == "one"
    assert desk.out.take() == [CancelTimer(AnswerDue(1)), Release(A.peer, "tea")]
    assert len(desk.requests) == 0
    assert desk.requests.handle_answer(A.peer, 1) is None
    assert desk.requests.handle_timeout(1) is None
    assert desk.requests.handle_link_down(A.peer, Reason.CRASHED) == []
    assert desk.out.take() == []


def test_answers_of_peers_that_were_not_asked_are_none() -> None:
    desk = Desk()
    desk.ask(A, "one")
    desk.out.take()
    for peer, number in ((B.peer, 1), (A.peer, 7)):
        assert desk.requests.context(peer, number) is None
        assert desk.requests.handle_answer(peer, number) is None
    assert desk.out.take() == []
    assert len(desk.requests) == 1


def test_without_a_link_one_is_dialled_and_held_until_all_is_answered() -> None:
    desk = Desk()
    desk.ask(A, "one", is_linked=False)
    desk.ask(A, "two", is_linked=False)
    hold = Hold(A.peer, A.hints, "tea")
    assert desk.out.take() == [hold, SetTimer(4.0, AnswerDue(1)), SetTimer(4.0, AnswerDue(2))]
    assert desk.requests.handle_answer(A.peer, 1) is None, "it was not sent yet"
    desk.requests.handle_link_up(A.peer)
    assert desk.out.take() == [Send(A.peer, Question(1)), Send(A.peer, Question(2))]
    desk.requests.handle_link_up(A.peer)
    desk.requests.handle_link_up(B.peer)
    assert desk.out.take() == []
    assert desk.requests.handle_answer(A.peer, 2) == "two"
    assert desk.out.take() == [CancelTimer(AnswerDue(2))]
    assert desk.requests.handle_answer(A.peer, 1) == "one"
    assert desk.out.take() == [CancelTimer(AnswerDue(1)), Release(A.peer, "tea")]


def test_one_try_that_is_not_answered_in_time_fails() -> None:
    desk = Desk()
    desk.ask(A, "one")
    desk.ask(B, "two", is_linked=False)
    desk.out.take()
    assert desk.requests.handle_timeout(1) == Failed(A.peer, "one", Reason.TIMEOUT, Question(1))
    assert desk.requests.handle_timeout(2) == Failed(B.peer, "two", Reason.UNREACHABLE, Question(2))
    assert desk.out.take() == [Release(A.peer, "tea"), Release(B.peer, "tea")]
    assert desk.requests.handle_timeout(1) is None


def test_each_try_waits_twice_as_long_as_the_one_before() -> None:
    desk = Desk()
    desk.ask(A, "one", THRICE)
    desk.out.take()
    for seconds in (8.0, 16.0):
        assert desk.requests.handle_timeout(1) is None
        assert desk.out.take() == [Send(A.peer, Question(1)), SetTimer(seconds, AnswerDue(1))]
    assert desk.requests.handle_timeout(1) == Failed(A.peer, "one", Reason.TIMEOUT, Question(1))
    assert desk.out.take() == [Release(A.peer, "tea")]


def test_a_try_without_a_link_sends_nothing_until_there_is_one() -> None:
    desk = Desk()
    desk.ask(A, "one", THRICE, is_linked=False)
    desk.out.take()
    desk.requests.handle_timeout(1)
    assert desk.out.take() == [SetTimer(8.0, AnswerDue(1))]
    desk.requests.handle_link_up(A.peer)
    assert desk.out.take() == [Send(A.peer, Question(1))]


def test_a_link_that_goes_fails_what_was_asked_over_it_and_nothing_else() -> None:
    desk = Desk()
    desk.ask(A, "one")
    desk.ask(A, "two", THRICE)
    desk.ask(B, "three")
    desk.out.take()
    assert desk.requests.handle_link_down(A.peer, Reason.CRASHED) == [
        Failed(A.peer, "one", Reason.CRASHED, Question(1)),
        Failed(A.peer, "two", Reason.CRASHED, Question(2)),
    ]
    assert desk.out.take() == [
        CancelTimer(AnswerDue(1)),
        CancelTimer(AnswerDue(2)),
        Release(A.peer, "tea"),
    ]
    assert len(desk.requests) == 1


def test_what_survives_its_link_is_sent_again_over_the_next() -> None:
    desk = Desk()
    desk.ask(A, "one", LASTING)
    desk.out.take()
    assert desk.requests.handle_link_down(A.peer, Reason.CRASHED) == []
    assert desk.requests.handle_answer(A.peer, 1) is None, "no answer comes without a link"
    assert desk.out.take() == [], "the link is still held"
    desk.requests.handle_link_up(A.peer)
    assert desk.out.take() == [Send(A.peer, Question(1))]
    desk.requests.handle_link_down(A.peer, Reason.CRASHED)
    desk.requests.handle_timeout(1)
    assert desk.out.take() == [SetTimer(8.0, AnswerDue(1))]
    assert desk.requests.handle_timeout(1) == Failed(A.peer, "one", Reason.UNREACHABLE, Question(1))


def test_an_answer_that_is_being_made_is_waited_for_with_all_tries_again() -> None:
    desk = Desk()
    desk.ask(A, "one", LASTING)
    desk.requests.handle_timeout(1)
    desk.out.take()
    desk.requests.extend(1, 60.0)
    assert desk.out.take() == [SetTimer(60.0, AnswerDue(1))]
    assert desk.requests.handle_timeout(1) is None, "a try is left"


def test_what_nobody_wants_any_more_is_withdrawn_without_a_failure() -> None:
    desk = Desk()
    for word in ("one", "two"):
        desk.ask(A, word)
    desk.ask(B, "two")
    desk.out.take()
    desk.requests.withdraw(A.peer, lambda word: word == "two")
    assert desk.out.take() == [CancelTimer(AnswerDue(2))]
    desk.requests.withdraw(A.peer, lambda word: True)
    assert desk.out.take() == [CancelTimer(AnswerDue(1)), Release(A.peer, "tea")]
    assert desk.requests.handle_answer(A.peer, 1) is None
    assert desk.requests.handle_answer(B.peer, 3) == "two", "another peer's is not touched"


def test_links_that_are_kept_go_when_they_are_idle_and_not_needed() -> None:
    desk = Desk(keeps_links=True)
    for contact in (A, B):
        desk.ask(contact, "one")
    desk.requests.handle_answer(A.peer, 1)
    assert Release(A.peer, "tea") not in desk.out.take()
    desk.requests.release_idle({A.peer: None})
    assert desk.out.take() == []
    desk.requests.release_idle({})
    assert desk.out.take() == [Release(A.peer, "tea")], "the other is asked something"
    desk.requests.handle_timeout(2)
    desk.requests.release_idle({})
    desk.ask(A, "two")
    assert desk.out.take()[:2] == [Release(B.peer, "tea"), Hold(A.peer, A.hints, "tea")]


def test_who_says_nothing_is_known_by_its_link_and_by_its_tries() -> None:
    desk = Desk()
    number = desk.ask(A, "one", Retry(4.0, tries=3, survives_link=True))
    assert (desk.requests.silent(A.peer), desk.requests.silent_context(number)) == ([], None)
    desk.requests.handle_timeout(number)
    assert desk.requests.silent(A.peer) == [], "one try may be lost"
    desk.requests.handle_link_closed(A.peer)
    assert desk.requests.silent(A.peer) == ["one"], "there is no link either"
    desk.requests.handle_link_up(A.peer)
    assert desk.requests.silent(A.peer) == []
    desk.requests.handle_timeout(number)
    assert (desk.requests.silent(A.peer), desk.requests.silent_context(number)) == (["one"], "one")
    desk.requests.handle_answer(A.peer, number)
    assert (desk.requests.silent(A.peer), desk.requests.silent_context(number)) == ([], None)


def test_a_link_that_closed_since_it_was_not_needed_fails_nothing() -> None:
    desk = Desk()
    number = desk.ask(A, "one")
    desk.out.clear()
    desk.requests.handle_link_closed(A.peer)
    assert (desk.requests.context(A.peer, number), desk.out.take()) == (None, [])
    desk.requests.handle_link_up(A.peer)
    assert desk.out.take() == [Send(A.peer, Question(number))]


def test_a_link_that_is_held_for_later_is_kept_until_it_is_idle() -> None:
    desk = Desk(keeps_links=True)
    desk.requests.hold(A)
    desk.requests.hold(A)
    desk.ask(A, "one", is_linked=False)
    assert desk.out.take() == [Hold(A.peer, A.hints, "tea"), SetTimer(4.0, AnswerDue(1))]
