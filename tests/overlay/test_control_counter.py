from __future__ import annotations

from tests.overlay.harness import TOPIC, Following, hints, instruction, peer_id

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.reasons import Reason
from linnet.overlay.control_counter import CounterFollower
from linnet.overlay.edges import ConnectDue, RetryDue
from linnet.overlay.messages import EdgeClose, EdgeOpen
from linnet.overlay.notices import NeighborDown, NeighborUp
from linnet.trace.records import Kind, Record

A, B, C = (peer_id(name) for name in "abc")
PURPOSE = TOPIC.hex()
CONNECT, RETRY = ConnectDue(TOPIC), RetryDue(TOPIC)


def test_one_status_when_all_neighbors_are_up() -> None:
    case = Following(CounterFollower)
    assert case.said(case.follower.follow_instruction, instruction(1, A, B), 0.0) == [
        Hold(A, hints(A), PURPOSE),
        Hold(B, hints(B), PURPOSE),
        SetTimer(15.0, CONNECT),
    ]
    case.links[A] = None
    assert case.said(case.follower.handle_link_up, A) == [Send(A, EdgeOpen(TOPIC))]
    assert case.said(case.follower.handle_open, A) == [NeighborUp(TOPIC, A)]
    assert not case.is_due()
    case.links[B] = None
    case.follower.handle_link_up(B)
    assert case.said(case.follower.handle_open, B) == [NeighborUp(TOPIC, B), CancelTimer(CONNECT)]
    assert case.is_due()
    assert case.follower.counter == 1
    assert case.said(case.follower.handle_open, B) == []
    assert case.said(case.follower.handle_connect_due, 20.0) == []
    assert not case.is_due()


def test_only_the_newest_instruction_counts() -> None:
    case = Following(CounterFollower)
    case.follower.follow_instruction(instruction(3, A, B), 0.0)
    case.bring_up(A)
    assert case.said(case.follower.follow_instruction, instruction(2, C), 0.0) == [
        Record(Kind.REJECTED, TOPIC, reason=Reason.STALE, note="instruction 2, newest 3")
    ]
    # A newer one cancels what the older has begun.
    assert case.said(case.follower.follow_instruction, instruction(5, A, C), 0.0) == [
        Release(B, PURPOSE),
        Hold(C, hints(C), PURPOSE),
        SetTimer(15.0, CONNECT),
    ]
    assert not case.is_due()
    case.bring_up(C)
    assert case.is_due()
    assert case.follower.counter == 5


def test_an_instruction_that_holds_already_is_answered_at_once() -> None:
    case = Following(CounterFollower)
    case.follower.follow_instruction(instruction(1, A), 0.0)
    case.bring_up(A)
    assert case.is_due()
    assert case.said(case.follower.follow_instruction, instruction(2, A), 0.0) == [CancelTimer(CONNECT)]
    assert case.is_due()
    assert case.said(case.follower.follow_instruction, instruction(3), 0.0) == [
        NeighborDown(TOPIC, A),
        Send(A, EdgeClose(TOPIC)),
        Release(A, PURPOSE),
        CancelTimer(CONNECT),
    ]
    assert case.is_due()


def test_the_same_instruction_again_means_that_the_status_was_lost() -> None:
    case = Following(CounterFollower)
    case.follower.follow_instruction(instruction(1, A), 0.0)
    assert case.said(case.follower.follow_instruction, instruction(1, A), 0.0) == [
        Record(Kind.REJECTED, TOPIC, reason=Reason.STALE, note="instruction 1, newest 1")
    ]
    case.bring_up(A)
    assert case.is_due()
    assert case.said(case.follower.follow_instruction, instruction(1, A), 0.0) == []
    assert case.is_due()


def test_failures_end_in_a_status_too() -> None:
    case = Following(CounterFollower)
    case.follower.follow_instruction(instruction(1, A, B, C), 0.0)
    case.bring_up(A)
    assert case.said(case.follower.handle_dial_failed, B) == []
    assert not case.is_due()
    # C answers, but has not joined the topic.
    case.links[C] = None
    case.follower.handle_link_up(C)
    assert case.said(case.follower.handle_close, C) == [CancelTimer(CONNECT), SetTimer(10.0, RETRY)]
    assert case.is_due()
    assert case.said(case.follower.handle_dial_failed, B) == []
    assert case.said(case.follower.handle_dial_failed, A) == []
    assert not case.is_due()


def test_what_does_not_come_up_in_time_has_failed() -> None:
    case = Following(CounterFollower)
    case.follower.follow_instruction(instruction(1, A), 0.0)
    assert case.said(case.follower.handle_connect_due, 15.0) == [CancelTimer(CONNECT), SetTimer(10.0, RETRY)]
    assert case.is_due()


def test_an_unfulfilled_instruction_is_tried_again_and_again() -> None:
    case = Following(CounterFollower)
    case.follower.follow_instruction(instruction(1, A, B), 0.0)
    case.links[B] = None
    case.follower.handle_link_up(B)
    case.follower.handle_connect_due(15.0)
    assert case.is_due()
    for _ in range(2):
        assert case.said(case.follower.handle_retry_due) == [
            Hold(A, hints(A), PURPOSE),
            Send(B, EdgeOpen(TOPIC)),
            SetTimer(10.0, RETRY),
        ]
        assert case.is_due()
    case.bring_up(A, B)
    assert case.said(case.follower.handle_retry_due) == []
    assert not case.is_due()


def test_a_lost_neighbor_is_told_at_once() -> None:
    case = Following(CounterFollower)
    case.follower.follow_instruction(instruction(1, A, B), 0.0)
    case.bring_up(A, B)
    assert case.is_due()
    del case.links[A]
    assert case.said(case.follower.handle_link_down, A) == [NeighborDown(TOPIC, A), SetTimer(10.0, RETRY)]
    assert case.is_due()
    assert case.said(case.follower.handle_close, B) == [NeighborDown(TOPIC, B), SetTimer(10.0, RETRY)]
    assert case.is_due()
    assert case.follower.counter == 1


def test_a_neighbor_lost_while_others_connect_is_part_of_the_one_status() -> None:
    case = Following(CounterFollower)
    case.follower.follow_instruction(instruction(1, A, B), 0.0)
    case.bring_up(A)
    del case.links[A]
    assert case.said(case.follower.handle_link_down, A) == [NeighborDown(TOPIC, A)]
    assert not case.is_due()
    case.follower.handle_dial_failed(A)
    case.bring_up(B)
    assert case.is_due()


def test_an_offer_without_instruction_is_remembered_but_no_neighbor() -> None:
    case = Following(CounterFollower)
    case.links[A] = None
    assert case.said(case.follower.handle_link_up, A) == []
    assert case.said(case.follower.handle_open, A) == []
    assert case.said(case.follower.follow_instruction, instruction(1, A), 0.0) == [
        Hold(A, hints(A), PURPOSE),
        Send(A, EdgeOpen(TOPIC)),
        NeighborUp(TOPIC, A),
        CancelTimer(CONNECT),
    ]
    assert case.is_due()


def test_a_new_tracker_counts_from_the_beginning_and_neighbors_stay() -> None:
    case = Following(CounterFollower)
    case.follower.follow_instruction(instruction(7, A), 0.0)
    case.bring_up(A)
    assert case.is_due()
    case.follower.forget_counter()
    case.follower.report_rtts()
    assert not case.is_due()
    assert list(case.follower.edges.up) == [A]
    assert case.said(case.follower.follow_instruction, instruction(1, A), 0.0) == [CancelTimer(CONNECT)]
    assert case.is_due()


def test_reports_wait_for_the_instruction_that_is_carried_out() -> None:
    case = Following(CounterFollower)
    case.follower.follow_instruction(instruction(1, A), 0.0)
    case.follower.report_rtts()
    assert not case.is_due()
    case.bring_up(A)
    assert case.is_due()
    case.follower.report_rtts()
    assert case.is_due()
