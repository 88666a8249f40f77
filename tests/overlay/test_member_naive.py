from __future__ import annotations

from tests.overlay.harness import TOPIC, hints, peer_id

from linnet.core.effects import Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, PeerId
from linnet.core.timers import Tick
from linnet.overlay.config import MemberConfig
from linnet.overlay.edges import Edges
from linnet.overlay.member_naive import NaiveFollower
from linnet.overlay.messages import EdgeClose, EdgeOpen, Instruction
from linnet.overlay.notices import NeighborDown, NeighborUp

A, B, C = (peer_id(name) for name in "abc")
PURPOSE = TOPIC.hex()
CONNECT = Tick("member", "connect", TOPIC)


class Case:
    """A follower and the links of its node."""

    def __init__(self) -> None:
        self.links: dict[PeerId, None] = {}
        self.follower = NaiveFollower(TOPIC, MemberConfig(), Edges(TOPIC, self.links))

    def is_due(self) -> bool:
        due, self.follower.status_due = self.follower.status_due, False
        return due

    def bring_up(self, *peers: PeerId) -> None:
        for peer in peers:
            self.links[peer] = None
            self.follower.linked(peer)
            self.follower.opened(peer)


def instruction(counter: int, *peers: PeerId) -> Instruction:
    return Instruction(TOPIC, counter, tuple(Contact(peer, hints(peer)) for peer in peers), ())


def test_a_status_is_due_after_each_connection() -> None:
    case = Case()
    assert case.follower.instruct(instruction(1, A, B), 0.0) == [
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
    assert case.follower.instruct(instruction(2, C), 0.0) == [
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
    assert case.follower.instruct(instruction(1, B), 0.0) == [Hold(B, hints(B), PURPOSE)]


def test_whoever_opens_an_edge_is_a_neighbor() -> None:
    case = Case()
    case.links[A] = None
    assert case.follower.opened(A) == [
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
    assert case.follower.closed(A) == [NeighborDown(TOPIC, A), Release(A, PURPOSE)]
    assert case.is_due()
    del case.links[B]
    assert case.follower.unlinked(B) == [NeighborDown(TOPIC, B), Release(B, PURPOSE)]
    assert case.is_due()
    assert case.follower.closed(C) == []
    assert case.follower.unlinked(C) == []
    assert not case.is_due()


def test_what_cannot_be_connected_is_given_up() -> None:
    case = Case()
    case.follower.instruct(instruction(1, A), 0.0)
    case.follower.instruct(instruction(2, B), 10.0)
    assert case.follower.dial_failed(C) == []
    assert case.follower.fired("connect", 15.0) == [Release(A, PURPOSE), SetTimer(10.0, CONNECT)]
    assert case.is_due()
    assert case.follower.dial_failed(B) == [Release(B, PURPOSE)]
    assert case.is_due()
    assert case.follower.fired("connect", 25.0) == []
    assert case.follower.fired("retry", 25.0) == []


def test_there_are_no_reports_of_their_own_and_no_counters_to_reset() -> None:
    case = Case()
    case.follower.instruct(instruction(4, A), 0.0)
    assert case.follower.counter == 4
    case.follower.report()
    assert not case.is_due()
    case.follower.reset()
    assert case.follower.counter is None
