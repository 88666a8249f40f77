"""Questions that wait for answers, and their links."""

from __future__ import annotations

from tests.overlay.kademlia.people import contact

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.timers import Tick
from linnet.overlay.kademlia.messages import PingNode
from linnet.overlay.kademlia.questions import ASKED, OWNER, PURPOSE, About, Lost, Questions

A, B = contact(1), contact(2)
ONE, TWO = About("lookup", 1), About("ping", 2)


def tick(number: int) -> Tick:
    return Tick(OWNER, ASKED, number.to_bytes(8, "big"))


def test_without_a_link_it_is_dialled_first_and_held_until_all_is_answered() -> None:
    questions = Questions(4.0)
    hold = Hold(A.peer, A.hints, PURPOSE)
    assert questions.ask(A, ONE, PingNode, False) == [hold, SetTimer(4.0, tick(1))]
    assert questions.ask(A, TWO, PingNode, False) == [SetTimer(4.0, tick(2))]
    assert questions.answered(A.peer, 1) == (None, []), "it was not even asked"
    assert questions.link_up(A.peer) == [Send(A.peer, PingNode(1)), Send(A.peer, PingNode(2))]
    assert questions.link_up(A.peer) == []
    assert questions.answered(A.peer, 2) == (TWO, [CancelTimer(tick(2))])
    assert questions.answered(A.peer, 1) == (ONE, [CancelTimer(tick(1)), Release(A.peer, PURPOSE)])
    assert len(questions) == 0


def test_on_a_link_it_is_asked_at_once() -> None:
    questions = Questions(4.0)
    hold = Hold(A.peer, A.hints, PURPOSE)
    assert questions.ask(A, ONE, PingNode, True) == [hold, Send(A.peer, PingNode(1)), SetTimer(4.0, tick(1))]


def test_answers_of_others_and_second_ones_are_none() -> None:
    questions = Questions(4.0)
    questions.ask(A, ONE, PingNode, True)
    assert questions.answered(B.peer, 1) == (None, [])
    assert questions.answered(A.peer, 7) == (None, [])
    questions.answered(A.peer, 1)
    assert questions.answered(A.peer, 1) == (None, [])


def test_silence_and_a_lost_link_end_questions() -> None:
    questions = Questions(4.0)
    questions.ask(A, ONE, PingNode, True)
    questions.ask(A, TWO, PingNode, True)
    assert questions.fired(tick(1)) == (Lost(A.peer, ONE), [])
    assert questions.fired(tick(1)) == (None, [])
    assert questions.lost(A.peer) == (
        [Lost(A.peer, TWO)],
        [CancelTimer(tick(2)), Release(A.peer, PURPOSE)],
    )
    assert questions.lost(A.peer) == ([], [])
