"""Recovery by id: when, of whom, how often, and when it is left."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tests.delivery.graphs import name
from tests.driven import Driven

from linnet.core.effects import CancelTimer, Send, SetTimer
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.causal_barriers import EventRecovery, RecoveryDue
from linnet.delivery.config import BarrierConfig
from linnet.delivery.messages import Given, Want
from linnet.trace.records import Kind, Record

TOPIC = TopicId(b"t" * 32)
TICK = RecoveryDue(TOPIC)
P, Q, R = (PeerId(bytes([letter]) * 32) for letter in b"pqr")
X, Y, Z = name(1), name(2), name(3)
CONFIG = BarrierConfig(delay=0.5, timeout=2.0, tries=3, ids=2)


def want(peer: PeerId, request: int, *ids: EventId) -> Send[Want]:
    return Send(peer, Want(TOPIC, request, ids))


def left(id: EventId, reason: Reason, peer: PeerId | None = None) -> Record:
    return Record(Kind.RESYNC, TOPIC, id, peer=peer, reason=reason, note="left to synchronisation")


def given(request: int, *unknown: EventId, reason: Reason | None = Reason.NOT_HELD) -> Given:
    return Given(TOPIC, request, (), (), unknown, reason)


def fire(recovery: Driven, now: float, *sources: PeerId) -> list[Any]:
    recovery.handle_timer()
    asked: list[Any] = recovery.ask(now, sources)
    return asked


@pytest.fixture
def recovery() -> Driven:
    return Driven(lambda out: EventRecovery(TOPIC, CONFIG, out))


def test_the_sender_of_what_depends_on_it_is_asked_first_then_the_others(recovery: Driven) -> None:
    recovery.want(X, R, 0.5)
    assert recovery.arm(0.0) == [SetTimer(0.5, TICK)]
    assert recovery.arm(0.1) == [], "the timer is set already"
    assert fire(recovery, 0.5, P, Q, R) == [want(R, 1, X), SetTimer(2.0, TICK)]
    asked = [fire(recovery, 0.5 + 2.0 * turn, P, Q, R)[0] for turn in (1, 2)]
    assert [one.peer for one in asked if isinstance(one, Send)] == [Q, P]
    assert fire(recovery, 6.5, P, Q, R) == [left(X, Reason.TIMEOUT, P)]
    assert (recovery.left, len(recovery)) == (1, 1)


def test_what_came_meanwhile_is_not_asked_for(recovery: Driven) -> None:
    recovery.want(X, P, 0.5)
    recovery.want(Y, P, 0.5)
    recovery.remove(X)
    assert X not in recovery
    assert Y in recovery
    assert fire(recovery, 0.5, P) == [want(P, 1, Y), SetTimer(2.0, TICK)]
    recovery.remove(Y)
    assert fire(recovery, 2.5, P) == []


def test_what_is_due_together_is_asked_for_together_in_questions_of_a_bounded_size(
    recovery: Driven,
) -> None:
    for id in (X, Y, Z):
        recovery.want(id, None, 0.5)
    assert fire(recovery, 0.4995, P)[:2] == [want(P, 1, X, Y), want(P, 2, Z)]


def test_sources_take_turns(recovery: Driven) -> None:
    recovery.want(X, None, 0.0)
    assert fire(recovery, 0.0, P, Q)[0] == want(P, 1, X)
    recovery.want(Y, None, 0.1)
    assert fire(recovery, 0.1, P, Q)[0] == want(Q, 2, Y)


def test_who_did_not_answer_is_not_asked_twice_in_a_row_if_there_is_another() -> None:
    recovery = Driven(lambda out: EventRecovery(TOPIC, BarrierConfig(tries=9), out))
    recovery.want(X, Q, 0.0)
    sends = [fire(recovery, 2.0 * turn, P, Q)[0] for turn in range(9)]
    asked = [send.peer for send in sends if isinstance(send, Send)]
    assert len(asked) == 9
    assert all(one != other for one, other in pairwise(asked))


def test_not_held_costs_no_try_and_all_who_lack_it_are_passed_over(recovery: Driven) -> None:
    peers = [PeerId(bytes([letter]) * 32) for letter in b"abcdefgh"]
    recovery.want(X, None, 0.0)
    asked: dict[PeerId, None] = {}
    for request in range(1, 9):
        send = recovery.ask(0.0, peers)[0]
        assert isinstance(send, Send)
        asked[send.peer] = None
        recovery.handle_given(send.peer, given(request, X), 0.0)
    assert len(asked) == 8
    assert recovery.ask(0.0, peers) == [left(X, Reason.NOT_HELD, list(asked)[-1])]
    assert recovery.left == 1


def test_a_new_source_is_asked_for_what_was_left(recovery: Driven) -> None:
    recovery.want(X, None, 0.0)
    assert recovery.ask(0.0, []) == [left(X, Reason.NOT_HELD)]
    assert fire(recovery, 5.0, P) == [], "it is left until something changes"
    recovery.handle_source_up(Q, 6.0)
    assert recovery.arm(6.0) == [SetTimer(0.0, TICK)]
    assert fire(recovery, 6.0, Q) == [want(Q, 1, X), SetTimer(2.0, TICK)]


def test_one_who_lacked_it_and_comes_again_is_asked_again(recovery: Driven) -> None:
    recovery.want(X, None, 0.0)
    recovery.ask(0.0, [P])
    recovery.handle_given(P, given(1, X), 0.0)
    assert recovery.ask(0.0, [P]) == [left(X, Reason.NOT_HELD, P)]
    recovery.handle_source_up(P, 1.0)
    assert fire(recovery, 1.0, P)[0] == want(P, 2, X)


def test_one_who_sends_another_that_depends_on_it_is_asked_for_what_was_left(recovery: Driven) -> None:
    recovery.want(X, None, 0.0)
    recovery.ask(0.0, [])
    recovery.want(X, P, 1.0)
    assert fire(recovery, 1.0, P)[0] == want(P, 1, X)


def test_the_next_is_asked_when_a_source_goes_away(recovery: Driven) -> None:
    recovery.want(X, P, 0.0)
    recovery.want(Y, Q, 0.0)
    recovery.ask(0.0, [P, Q])
    recovery.handle_source_down(P, 0.3)
    assert fire(recovery, 0.3, Q) == [want(Q, 3, X), SetTimer(1.7, TICK)]


def test_one_who_sent_a_part_is_asked_for_the_rest_at_once(recovery: Driven) -> None:
    recovery.want(X, P, 0.0)
    recovery.want(Y, P, 0.0)
    assert recovery.ask(0.0, [P, Q])[0] == want(P, 1, X, Y)
    recovery.remove(X)
    recovery.handle_given(P, given(1, reason=Reason.TOO_LARGE), 0.1)
    assert fire(recovery, 0.1, P, Q)[0] == want(P, 2, Y)


def test_one_who_sent_nothing_new_lets_the_next_have_its_turn(recovery: Driven) -> None:
    recovery.want(X, P, 0.0)
    recovery.ask(0.0, [P, Q])
    recovery.handle_given(P, given(1, reason=Reason.TOO_LARGE), 0.1)
    assert fire(recovery, 0.1, P, Q)[0] == want(Q, 2, X)


def test_one_who_answers_and_never_helps_is_asked_only_so_often(recovery: Driven) -> None:
    recovery.want(X, P, 0.0)
    for request in (1, 2, 3):
        assert recovery.ask(0.0, [P])[0] == want(P, request, X)
        recovery.handle_given(P, given(request), 0.0)
    assert recovery.ask(0.0, [P]) == [left(X, Reason.TIMEOUT, P)]


def test_answers_to_the_questions_of_others_change_nothing(recovery: Driven) -> None:
    recovery.want(X, P, 0.0)
    recovery.ask(0.0, [P, Q])
    recovery.handle_given(Q, given(1, X, Y), 0.0)
    recovery.handle_given(P, given(7), 0.0)
    assert recovery.ask(0.1, [P, Q]) == []


def test_what_nobody_needs_is_asked_for_only_if_it_was_wanted_by_itself(recovery: Driven) -> None:
    recovery.want(X, P, 0.0)
    recovery.want(Y, P, 0.0, wanted=True)
    for id in (X, Y, Z):
        recovery.forget_need(id)
    assert (X in recovery, Y in recovery) == (False, True)


def test_questions_that_nobody_answers_are_forgotten(recovery: Driven) -> None:
    for number in range(2_000):
        recovery.want(name(number), P, float(number))
        recovery.ask(float(number), [P])
        recovery.remove(name(number))
    assert len(recovery._requests) == 1024


def test_nothing_is_asked_for_after_the_end(recovery: Driven) -> None:
    assert recovery.stop() == []
    recovery.want(X, P, 0.5)
    recovery.arm(0.0)
    assert recovery.stop() == [CancelTimer(TICK)]
    assert fire(recovery, 0.5, P) == []


def test_what_nothing_depends_on_is_forgotten_once_nobody_has_it(recovery: Driven) -> None:
    """It was only named: by one who may have made it up."""
    recovery.want(X, P, 0.0, wanted=True)
    recovery.want(Y, P, 0.0, wanted=True)
    recovery.want(Y, P, 0.0)
    fire(recovery, 0.0, P)
    recovery.handle_given(P, given(1, X, Y), 0.1)
    assert fire(recovery, 0.1, P)[:2] == [left(X, Reason.NOT_HELD, P), left(Y, Reason.NOT_HELD, P)]
    assert (X in recovery, Y in recovery) == (False, True)
    recovery.forget_need(Y)
    assert len(recovery) == 0
