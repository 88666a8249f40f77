from __future__ import annotations

from tests.overlay.harness import TOPIC, Following, hints, instruction, peer_id, said

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.machine.outbox import Outbox
from linnet.overlay.control_naive import NaiveFollower, StatusDue, StatusQueue
from linnet.overlay.edges import ConnectDue
from linnet.overlay.messages import EdgeClose, EdgeOpen, StatusAll, TopicStatus
from linnet.overlay.notices import NeighborDown, NeighborUp

A, B, C = (peer_id(name) for name in "abc")
PURPOSE = TOPIC.hex()
CONNECT = ConnectDue(TOPIC)


def test_a_status_is_due_after_each_connection() -> None:
    case = Following(NaiveFollower)
    assert case.said(case.follower.follow_instruction, instruction(1, A, B), 0.0) == [
        Hold(A, hints(A), PURPOSE),
        Hold(B, hints(B), PURPOSE),
        SetTimer(15.0, CONNECT),
    ]
    assert not case.is_due()
    case.bring_up(A)
    assert case.is_due()
    case.bring_up(B)
    assert case.is_due()


def test_a_newer_instruction_does_not_cancel_an_older_one() -> None:
    case = Following(NaiveFollower)
    case.follower.follow_instruction(instruction(1, A, B), 0.0)
    case.bring_up(A)
    # B is still under way: it is neither listed now, nor given up.
    assert case.said(case.follower.follow_instruction, instruction(2, C), 0.0) == [
        NeighborDown(TOPIC, A),
        Send(A, EdgeClose(TOPIC)),
        Release(A, PURPOSE),
        Hold(C, hints(C), PURPOSE),
    ]
    case.is_due()
    case.bring_up(B)
    assert list(case.follower.edges.up) == [B]
    assert case.is_due()


def test_an_older_instruction_counts_as_much_as_a_newer() -> None:
    case = Following(NaiveFollower)
    case.follower.follow_instruction(instruction(2, A), 0.0)
    assert case.said(case.follower.follow_instruction, instruction(1, B), 0.0) == [Hold(B, hints(B), PURPOSE)]


def test_whoever_opens_an_edge_is_a_neighbor() -> None:
    case = Following(NaiveFollower)
    case.links[A] = None
    assert case.said(case.follower.handle_open, A) == [
        Hold(A, (), PURPOSE),
        Send(A, EdgeOpen(TOPIC)),
        NeighborUp(TOPIC, A),
    ]
    assert case.is_due()


def test_connections_that_end_are_told() -> None:
    case = Following(NaiveFollower)
    case.follower.follow_instruction(instruction(1, A, B), 0.0)
    case.bring_up(A, B)
    case.is_due()
    assert case.said(case.follower.handle_close, A) == [NeighborDown(TOPIC, A), Release(A, PURPOSE)]
    assert case.is_due()
    del case.links[B]
    assert case.said(case.follower.handle_link_down, B) == [NeighborDown(TOPIC, B), Release(B, PURPOSE)]
    assert case.is_due()
    assert case.said(case.follower.handle_close, C) == []
    assert case.said(case.follower.handle_link_down, C) == []
    assert not case.is_due()


def test_what_cannot_be_connected_is_given_up() -> None:
    case = Following(NaiveFollower)
    case.follower.follow_instruction(instruction(1, A), 0.0)
    case.follower.follow_instruction(instruction(2, B), 10.0)
    assert case.said(case.follower.handle_dial_failed, C) == []
    assert case.said(case.follower.handle_connect_due, 15.0) == [Release(A, PURPOSE), SetTimer(10.0, CONNECT)]
    assert case.is_due()
    assert case.said(case.follower.handle_dial_failed, B) == [Release(B, PURPOSE)]
    assert case.is_due()
    assert case.said(case.follower.handle_connect_due, 25.0) == []
    assert case.said(case.follower.handle_retry_due) == []


def test_there_are_no_reports_of_their_own_and_no_counters_to_reset() -> None:
    case = Following(NaiveFollower)
    case.follower.follow_instruction(instruction(4, A), 0.0)
    assert case.follower.counter == 4
    case.follower.report_rtts()
    assert not case.is_due()
    case.follower.forget_counter()
    assert case.follower.counter is None


TRACKER, OTHER = peer_id("tracker"), peer_id("other")
OLD, NEW = StatusAll(()), StatusAll((TopicStatus(TOPIC, ()),))


def test_each_newer_status_replaces_the_older_and_starts_the_wait_anew() -> None:
    out = Outbox()
    queue = StatusQueue(0.2, out)
    wait = SetTimer(0.2, StatusDue(TRACKER))
    assert said(out, queue.put_status, TRACKER, (OLD,)) == [wait]
    assert said(out, queue.put_status, TRACKER, (NEW,)) == [wait]
    assert said(out, queue.put_status, OTHER, (OLD,)) == [SetTimer(0.2, StatusDue(OTHER))]
    assert said(out, queue.send_status, TRACKER) == [Send(TRACKER, NEW)]
    assert said(out, queue.send_status, TRACKER) == []
    assert said(out, queue.send_status, OTHER) == [Send(OTHER, OLD)]


def test_what_waits_goes_with_the_link() -> None:
    out = Outbox()
    queue = StatusQueue(0.2, out)
    assert said(out, queue.drop_status, TRACKER) == []
    queue.put_status(TRACKER, (OLD,))
    assert said(out, queue.drop_status, TRACKER) == [CancelTimer(StatusDue(TRACKER))]
    assert said(out, queue.send_status, TRACKER) == []
