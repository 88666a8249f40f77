from __future__ import annotations

from collections.abc import Callable

from tests.overlay.harness import TOPIC, P, hints, peer_id, said

from linnet.core.effects import Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, PeerId
from linnet.machine.outbox import Effect, Notice, Outbox
from linnet.overlay.adjacency import Adjacency
from linnet.overlay.config import MemberConfig
from linnet.overlay.edges import Edges
from linnet.overlay.member_naive import NaiveFollower
from linnet.overlay.messages import EdgeClose, EdgeOpen, Instruction
from linnet.overlay.notices import NeighborDown, NeighborUp
from linnet.overlay.timers import ConnectDue

A, B, C = (peer_id(name) for name in "abc")
PURPOSE = TOPIC.hex()
CONNECT = ConnectDue(TOPIC)


class Case:
    """A follower and the links of its node."""

    def __init__(self) -> None:
        self.links: dict[PeerId, None] = {}
        self.out = Outbox()
        edges = Edges(TOPIC, self.links, self.out, Adjacency(self.out))
        self.follower = NaiveFollower(TOPIC, MemberConfig(), edges, self.out)

    def said(self, act: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> list[Effect | Notice]:
        return said(self.out, act, *args, **kwargs)

    def is_due(self) -> bool:
        due, self.follower.status_due = self.follower.status_due, False
        return due

    def bring_up(self, *peers: PeerId) -> None:
        for peer in peers:
            self.links[peer] = None
            self.follower.handle_link_up(peer)
            self.follower.handle_open(peer)


def instruction(counter: int, *peers: PeerId) -> Instruction:
    return Instruction(TOPIC, counter, tuple(Contact(peer, hints(peer)) for peer in peers), ())


def test_a_status_is_due_after_each_connection() -> None:
    case = Case()
    assert case.said(case.follower.instruct, instruction(1, A, B), 0.0) == [
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
    case = Case()
    case.follower.instruct(instruction(1, A, B), 0.0)
    case.bring_up(A)
    # B is still under way: it is neither listed now, nor given up.
    assert case.said(case.follower.instruct, instruction(2, C), 0.0) == [
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
    case = Case()
    case.follower.instruct(instruction(2, A), 0.0)
    assert case.said(case.follower.instruct, instruction(1, B), 0.0) == [Hold(B, hints(B), PURPOSE)]


def test_whoever_opens_an_edge_is_a_neighbor() -> None:
    case = Case()
    case.links[A] = None
    assert case.said(case.follower.handle_open, A) == [
        Hold(A, (), PURPOSE),
        Send(A, EdgeOpen(TOPIC)),
        NeighborUp(TOPIC, A),
    ]
    assert case.is_due()


def test_connections_that_end_are_told() -> None:
    case = Case()
    case.follower.instruct(instruction(1, A, B), 0.0)
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
    case = Case()
    case.follower.instruct(instruction(1, A), 0.0)
    case.follower.instruct(instruction(2, B), 10.0)
    assert case.said(case.follower.handle_dial_failed, C) == []
    assert case.said(case.follower.handle_connect_due, 15.0) == [Release(A, PURPOSE), SetTimer(10.0, CONNECT)]
    assert case.is_due()
    assert case.said(case.follower.handle_dial_failed, B) == [Release(B, PURPOSE)]
    assert case.is_due()
    assert case.said(case.follower.handle_connect_due, 25.0) == []
    assert case.said(case.follower.handle_retry_due) == []


def test_there_are_no_reports_of_their_own_and_no_counters_to_reset() -> None:
    case = Case()
    case.follower.instruct(instruction(4, A), 0.0)
    assert case.follower.counter == 4
    case.follower.report()
    assert not case.is_due()
    case.follower.reset()
    assert case.follower.counter is None
