from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from tests.overlay.harness import HELLO, TOPIC, hints, peer_id

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp, Received, TimerFired
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.machine.router import table_of
from linnet.overlay.adjacency import Adjacency
from linnet.overlay.config import Control, MemberConfig
from linnet.overlay.member import Member
from linnet.overlay.messages import (
    EdgeClose,
    EdgeOpen,
    Instruction,
    Join,
    Leave,
    NeighborStatus,
    OverlayMessage,
    Reachability,
    Refusal,
    Status,
    StatusAll,
    TopicStatus,
)
from linnet.overlay.notices import JoinRefused, NeighborDown, NeighborUp, StorageKnown
from linnet.overlay.timers import (
    ConnectDue,
    FailoverDue,
    JoinDue,
    ReportDue,
    RetryDue,
    ReturnDue,
    StatusDue,
)
from linnet.sim.part_machine import PartMachine
from linnet.trace.records import Kind, Record

A, B, T, S = (peer_id(name) for name in ("a", "b", "tracker", "standby"))
TRACKER, STANDBY = Contact(T, hints(T)), Contact(S, hints(S))
ME = ("tls://me:1",)
OTHER_TOPIC = TopicId(sha256(b"another topic").digest())


TIMERS = {
    "failover": FailoverDue,
    "return": ReturnDue,
    "join": JoinDue,
    "report": ReportDue,
    "connect": ConnectDue,
    "retry": RetryDue,
}


class Driven:
    """A member with its outbox: each call returns what it asked for and told, in one order."""

    def __init__(self, config: MemberConfig, listens: tuple[str, ...] = ()) -> None:
        out = Outbox()
        self.member = Member(config, out, Adjacency(out), listens)
        self._machine = PartMachine(out, self.member)
        self.handle = self._machine.handle
        self.neighbors = self.member.neighbors
        self.tracker = self.member.tracker
        self.storage_nodes = self.member.storage_nodes

    def join(self, *wish: Any) -> list[Any]:  # noqa: ANN401 - as `Member.join`
        return self._machine.perform(lambda: self.member.join(*wish), 0.0)

    def leave(self, topic: TopicId, now: float) -> list[Any]:
        return self._machine.perform(lambda: self.member.leave(topic, now), now)

    def note_rtt(self, peer: PeerId, seconds: float) -> list[Any]:
        return self._machine.perform(lambda: self.member.note_rtt(peer, seconds), 0.0)


def tick(what: str, key: bytes = TOPIC) -> Timer:
    return StatusDue(PeerId(key)) if what == "status" else TIMERS[what](TopicId(key))


def up(member: Driven, peer: PeerId) -> list[Any]:
    return member.handle(LinkUp(peer, HELLO, True), 0.0)


def down(member: Driven, peer: PeerId) -> list[Any]:
    return member.handle(LinkDown(peer, Reason.CRASHED), 0.0)


def hear(member: Driven, peer: PeerId, message: OverlayMessage) -> list[Any]:
    return member.handle(Received(peer, message), 0.0)


def fire(member: Driven, what: str, topic: bytes = TOPIC) -> list[Any]:
    return member.handle(TimerFired(tick(what, topic)), 0.0)


def join(member: Driven, *trackers: Contact, topic: TopicId = TOPIC, near: bool = False) -> list[Any]:
    return member.join(topic, trackers, 4, near, False, 0.0)


def join_message(*neighbors: PeerId, topic: TopicId = TOPIC) -> Join:
    return Join(topic, neighbors, ME, 4, False, False)


def instruction(counter: int, *peers: PeerId, topic: TopicId = TOPIC) -> Instruction:
    return Instruction(topic, counter, tuple(Contact(peer, hints(peer)) for peer in peers), ())


def joined(*trackers: Contact, config: MemberConfig | None = None) -> Driven:
    """A member with one neighbour, A."""
    member = Driven(config or MemberConfig(), ME)
    join(member, *(trackers or (TRACKER,)))
    up(member, T)
    hear(member, T, instruction(1, A))
    up(member, A)
    hear(member, A, EdgeOpen(TOPIC))
    return member


def note(*peers: PeerId) -> Record:
    return Record(Kind.OVERLAY, TOPIC, note=",".join(peer[:4].hex() for peer in peers))


def status(counter: int, *peers: PeerId) -> Status:
    return Status(counter, TopicStatus(TOPIC, tuple(NeighborStatus(peer, None) for peer in peers)))


def test_from_joining_to_the_first_neighbor() -> None:
    member = Driven(MemberConfig(), ME)
    assert join(member, TRACKER) == [Hold(T, hints(T), "tracker"), SetTimer(2.0, tick("failover"))]
    assert up(member, T) == [
        CancelTimer(tick("failover")),
        Send(T, join_message()),
        SetTimer(10.0, tick("join")),
    ]
    assert hear(member, T, instruction(1, A)) == [
        CancelTimer(tick("join")),
        SetTimer(30.0, tick("report")),
        Hold(A, hints(A), TOPIC.hex()),
        SetTimer(15.0, tick("connect")),
        StorageKnown(TOPIC, ()),
    ]
    assert up(member, A) == [Send(A, EdgeOpen(TOPIC))]
    assert hear(member, A, EdgeOpen(TOPIC)) == [
        NeighborUp(TOPIC, A),
        CancelTimer(tick("connect")),
        note(A),
        Send(T, status(1, A)),
    ]
    assert member.neighbors(TOPIC) == (A,)
    assert member.tracker(TOPIC) == T
    assert member.member.topics == (TOPIC,)


def test_joining_twice_changes_nothing_and_other_wishes_are_told() -> None:
    member = joined()
    assert join(member, TRACKER) == []
    assert member.join(TOPIC, (TRACKER,), 4, False, True, 0.0) == [
        CancelTimer(tick("failover")),
        Send(T, Join(TOPIC, (A,), ME, 4, True, False)),
        SetTimer(10.0, tick("join")),
    ]
    # The owner names another tracker: neighbours stay.
    assert member.join(TOPIC, (STANDBY,), 4, False, True, 0.0) == [
        Hold(S, hints(S), "tracker"),
        SetTimer(2.0, tick("failover")),
        Send(T, Leave(TOPIC, moved=True)),
        Release(T, "tracker"),
    ]
    assert member.neighbors(TOPIC) == (A,)
    assert member.tracker(TOPIC) == S


def test_without_trackers_it_is_refused() -> None:
    assert join(Driven(MemberConfig())) == [JoinRefused(TOPIC, Reason.NO_ADDRESS)]


def test_leaving_lets_go_of_everything() -> None:
    member = joined()
    effects = member.leave(TOPIC, 0.0)
    timers = [effect for effect in effects if isinstance(effect, CancelTimer)]
    assert [timer.timer for timer in timers] == [kind(TOPIC) for kind in TIMERS.values()]
    assert [effect for effect in effects if not isinstance(effect, CancelTimer)] == [
        Send(T, Leave(TOPIC, moved=False)),
        NeighborDown(TOPIC, A),
        Send(A, EdgeClose(TOPIC)),
        Release(A, TOPIC.hex()),
        Release(T, "tracker"),
        note(),
    ]
    assert member.leave(TOPIC, 0.0) == []
    assert member.neighbors(TOPIC) == ()
    assert member.tracker(TOPIC) is None
    assert member.storage_nodes(TOPIC) == ()


def test_one_tracker_is_held_once_for_all_its_topics() -> None:
    member = joined()
    assert join(member, TRACKER, topic=OTHER_TOPIC) == [
        CancelTimer(tick("failover", OTHER_TOPIC)),
        Send(T, join_message(topic=OTHER_TOPIC)),
        SetTimer(10.0, tick("join", OTHER_TOPIC)),
    ]
    assert Release(T, "tracker") not in member.leave(TOPIC, 0.0)
    assert Release(T, "tracker") in member.leave(OTHER_TOPIC, 0.0)


def test_a_lost_neighbor_is_reported_at_once() -> None:
    member = joined()
    assert down(member, A) == [
        NeighborDown(TOPIC, A),
        SetTimer(10.0, tick("retry")),
        note(),
        Send(T, status(1)),
    ]


def test_failed_dials_are_reported() -> None:
    member = joined()
    hear(member, T, instruction(2, A, B))
    assert member.handle(DialFailed(B, Reason.DIAL_TIMEOUT), 0.0) == [
        CancelTimer(tick("connect")),
        SetTimer(10.0, tick("retry")),
        Send(T, status(2, A)),
    ]
    # A dial that lost against the one of the other end is no failure.
    assert member.handle(DialFailed(A, Reason.DUPLICATE_LINK), 0.0) == []


def test_only_the_tracker_that_is_followed_is_obeyed() -> None:
    member = joined()
    assert hear(member, B, instruction(9, B)) == [
        Record(Kind.REJECTED, TOPIC, peer=B, reason=Reason.NOT_RESPONSIBLE)
    ]
    assert hear(member, B, Refusal(TOPIC, Reason.TOO_MANY)) == [
        Record(Kind.REJECTED, TOPIC, peer=B, reason=Reason.NOT_RESPONSIBLE)
    ]
    assert hear(member, B, Reachability(Reason.DIAL_TIMEOUT)) == []
    assert member.member.reachable is None


def test_what_was_not_joined_is_refused() -> None:
    member = joined()
    assert hear(member, B, EdgeOpen(OTHER_TOPIC)) == [
        Record(Kind.REJECTED, OTHER_TOPIC, peer=B, reason=Reason.NOT_JOINED),
        Send(B, EdgeClose(OTHER_TOPIC)),
    ]
    assert hear(member, B, EdgeClose(OTHER_TOPIC)) == []
    assert hear(member, T, instruction(3, B, topic=OTHER_TOPIC)) == [
        Record(Kind.REJECTED, OTHER_TOPIC, peer=T, reason=Reason.NOT_JOINED),
        Send(T, Leave(OTHER_TOPIC, moved=False)),
    ]


def test_messages_for_a_tracker_are_not_for_a_member() -> None:
    heard = table_of((Member,)).messages
    assert not {Join, Leave, Status, StatusAll} & set(heard)


def test_an_unanswered_join_is_repeated() -> None:
    member = Driven(MemberConfig(), ME)
    join(member, TRACKER)
    up(member, T)
    assert fire(member, "join") == [
        CancelTimer(tick("failover")),
        Send(T, join_message()),
        SetTimer(10.0, tick("join")),
    ]
    down(member, T)
    assert fire(member, "join") == []


def test_a_refusal_is_told_once_and_tried_again_later() -> None:
    member = Driven(MemberConfig(), ME)
    join(member, TRACKER)
    up(member, T)
    assert hear(member, T, Refusal(TOPIC, Reason.TOO_MANY)) == [
        SetTimer(20.0, tick("join")),
        JoinRefused(TOPIC, Reason.TOO_MANY),
    ]
    assert hear(member, T, Refusal(TOPIC, Reason.TOO_MANY)) == [SetTimer(20.0, tick("join"))]


def test_round_trip_times_are_reported_in_time() -> None:
    member = joined()
    assert member.note_rtt(A, 0.05) == []
    assert fire(member, "report") == [
        SetTimer(30.0, tick("report")),
        Send(T, Status(1, TopicStatus(TOPIC, (NeighborStatus(A, 50_000),)))),
    ]
    member.note_rtt(B, 0.01)
    down(member, A)
    up(member, A)
    hear(member, A, EdgeOpen(TOPIC))
    assert Send(T, status(1, A)) in fire(member, "report")


def test_topology_aware_topics_report_a_first_time_soon() -> None:
    member = Driven(MemberConfig(), ME)
    join(member, TRACKER, near=True)
    up(member, T)
    hear(member, T, instruction(1, A))
    up(member, A)
    assert member.note_rtt(A, 0.05) == [SetTimer(1.0, tick("report"))]
    assert member.note_rtt(A, 0.06) == []
    assert member.note_rtt(B, 0.06) == []


def test_reachability_is_kept_and_recorded() -> None:
    member = joined()
    assert hear(member, T, Reachability(Reason.DIAL_TIMEOUT)) == [
        Record(Kind.CONTROL, peer=T, reason=Reason.UNREACHABLE_INBOUND, note="dial_timeout")
    ]
    assert (member.member.reachable, member.member.reachable_reason) == (False, Reason.DIAL_TIMEOUT)
    assert hear(member, T, Reachability(None)) == [Record(Kind.CONTROL, peer=T, note="reachable")]
    assert (member.member.reachable, member.member.reachable_reason) == (True, None)


def test_a_tracker_that_stays_away_is_replaced_by_its_standby() -> None:
    member = joined(TRACKER, STANDBY)
    assert down(member, T) == [SetTimer(2.0, tick("failover"))]
    assert fire(member, "failover") == [
        Hold(S, hints(S), "tracker"),
        SetTimer(20.0, tick("return")),
        SetTimer(2.0, tick("failover")),
    ]
    assert member.tracker(TOPIC) == S
    # The standby learns what stands, and counts from the beginning.
    assert up(member, S) == [
        CancelTimer(tick("failover")),
        Send(S, join_message(A)),
        SetTimer(10.0, tick("join")),
    ]
    assert hear(member, S, instruction(1, A)) == [
        CancelTimer(tick("join")),
        SetTimer(30.0, tick("report")),
        CancelTimer(tick("connect")),
        Send(S, status(1, A)),
    ]
    assert member.neighbors(TOPIC) == (A,)
    # The first is asked again from time to time.
    assert fire(member, "return") == [SetTimer(20.0, tick("return"))]
    assert up(member, T) == []
    assert fire(member, "return") == [
        CancelTimer(tick("failover")),
        Send(T, join_message(A)),
        SetTimer(10.0, tick("join")),
        Send(S, Leave(TOPIC, moved=True)),
        Release(S, "tracker"),
        CancelTimer(tick("return")),
    ]
    assert member.tracker(TOPIC) == T
    assert member.neighbors(TOPIC) == (A,)


def test_a_first_tracker_that_comes_late_is_preferred_to_a_standby_that_has_not_answered() -> None:
    member = Driven(MemberConfig(), ME)
    join(member, TRACKER, STANDBY)
    fire(member, "failover")
    assert up(member, T) == [
        CancelTimer(tick("failover")),
        Send(T, join_message()),
        SetTimer(10.0, tick("join")),
        Release(S, "tracker"),
        CancelTimer(tick("return")),
    ]


def test_a_link_that_comes_back_in_time_only_joins_again() -> None:
    member = joined(TRACKER, STANDBY)
    down(member, T)
    assert up(member, T) == [
        CancelTimer(tick("failover")),
        Send(T, join_message(A)),
        SetTimer(10.0, tick("join")),
    ]
    assert fire(member, "failover") == []
    # Perhaps it was started anew, and has forgotten its counters.
    assert Send(T, status(1, A)) in hear(member, T, instruction(1, A))


def test_with_all_trackers_away_each_is_asked_in_turn_and_the_node_is_told() -> None:
    member = Driven(MemberConfig(), ME)
    join(member, TRACKER, STANDBY)
    fire(member, "failover")
    assert fire(member, "failover") == [
        JoinRefused(TOPIC, Reason.UNREACHABLE),
        Release(S, "tracker"),
        SetTimer(2.0, tick("failover")),
    ]
    assert fire(member, "failover") == [
        Hold(S, hints(S), "tracker"),
        SetTimer(20.0, tick("return")),
        SetTimer(2.0, tick("failover")),
    ]
    alone = Driven(MemberConfig(), ME)
    join(alone, TRACKER)
    assert fire(alone, "failover") == [
        JoinRefused(TOPIC, Reason.UNREACHABLE),
        SetTimer(2.0, tick("failover")),
    ]
    assert fire(alone, "failover") == [SetTimer(2.0, tick("failover"))]


def test_without_a_tracker_neighbors_are_kept_and_come_back() -> None:
    member = joined()
    down(member, T)
    assert down(member, A) == [NeighborDown(TOPIC, A), SetTimer(10.0, tick("retry")), note()]
    assert up(member, A) == [Send(A, EdgeOpen(TOPIC))]
    assert hear(member, A, EdgeOpen(TOPIC)) == [NeighborUp(TOPIC, A), note(A)]


def test_naive_statuses_tell_all_topics_of_a_tracker_after_a_delay() -> None:
    config = MemberConfig(control=Control.NAIVE)
    member = joined(config=config)
    join(member, TRACKER, topic=OTHER_TOPIC)
    join(member, STANDBY, topic=TopicId(bytes(32)))
    hear(member, T, instruction(2, B, topic=OTHER_TOPIC))
    up(member, B)
    assert hear(member, B, EdgeOpen(OTHER_TOPIC)) == [
        NeighborUp(OTHER_TOPIC, B),
        Record(Kind.OVERLAY, OTHER_TOPIC, note=B[:4].hex()),
        SetTimer(0.2, tick("status", T)),
    ]
    one, other = NeighborStatus(A, None), NeighborStatus(B, None)
    assert fire(member, "status", T) == [
        Send(T, StatusAll((TopicStatus(TOPIC, (one,)), TopicStatus(OTHER_TOPIC, (other,)))))
    ]
    down(member, A)
    assert CancelTimer(tick("status", T)) in down(member, T)
    assert fire(member, "status", T) == []


@pytest.mark.parametrize("what", ["failover", "return", "join", "report", "connect", "retry"])
def test_timers_of_a_topic_that_was_left_do_nothing(what: str) -> None:
    member = joined()
    assert fire(member, what, OTHER_TOPIC) == []
    if what not in ("report", "join"):
        assert fire(member, what) == []
