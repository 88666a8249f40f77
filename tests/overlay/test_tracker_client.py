from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from tests.overlay.harness import HELLO, TOPIC, hints, instruction, peer_id, said, status

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp, Received, TimerFired
from linnet.core.reasons import Reason
from linnet.core.timers import Timer, TopicTimer
from linnet.machine.outbox import Outbox
from linnet.machine.router import table_of
from linnet.overlay.config import Control, MemberConfig
from linnet.overlay.control_counter import CounterFollower
from linnet.overlay.control_naive import NaiveFollower, StatusDue
from linnet.overlay.edges import ConnectDue, RetryDue
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
from linnet.overlay.notices import Adjacency, JoinRefused, NeighborDown, NeighborUp, StorageKnown
from linnet.overlay.tracker_client import (
    FailoverDue,
    JoinDue,
    Membership,
    ReportDue,
    ReturnDue,
    TopicOptions,
    TrackerClient,
)
from linnet.sim.light_network import PartMachine
from linnet.trace.records import Kind, Record

A, B, T, S = (peer_id(name) for name in ("a", "b", "tracker", "standby"))
TRACKER, STANDBY = Contact(T, hints(T)), Contact(S, hints(S))
ME = ("tls://me:1",)
OTHER_TOPIC = TopicId(sha256(b"another topic").digest())


TIMERS = (FailoverDue, ReturnDue, JoinDue, ReportDue, ConnectDue, RetryDue)


class Driven:
    """A member with its outbox: each call returns what it asked for and told, in one order."""

    def __init__(self, config: MemberConfig, listens: tuple[str, ...] = ()) -> None:
        out = Outbox()
        self.member = TrackerClient(config, out, Adjacency(out), listens)
        self._machine = PartMachine(out, self.member)
        self.handle = self._machine.handle
        self.neighbors = self.member.neighbors
        self.tracker = self.member.tracker
        self.storage_nodes = self.member.storage_nodes

    def join(self, *wish: Any) -> list[Any]:  # noqa: ANN401 - as `TopicOptions`
        return self._machine.perform(lambda: self.member.join(TopicOptions(*wish), 0.0), 0.0)

    def leave(self, topic: TopicId, now: float) -> list[Any]:
        return self._machine.perform(lambda: self.member.leave(topic, now), now)

    def perform(self, act: Callable[[], Any]) -> list[Any]:
        return self._machine.perform(act, 0.0)

    def note_rtt(self, peer: PeerId, seconds: float) -> list[Any]:
        return self._machine.perform(lambda: self.member.note_rtt(peer, seconds), 0.0)


def up(member: Driven, peer: PeerId) -> list[Any]:
    return member.handle(LinkUp(peer, HELLO, True, None), 0.0)


def down(member: Driven, peer: PeerId) -> list[Any]:
    return member.handle(LinkDown(peer, Reason.CRASHED), 0.0)


def hear(member: Driven, peer: PeerId, message: OverlayMessage) -> list[Any]:
    return member.handle(Received(peer, message), 0.0)


def fire(member: Driven, due: Callable[[Any], Timer], of: TopicId | PeerId = TOPIC) -> list[Any]:
    return member.handle(TimerFired(due(of)), 0.0)


def join(member: Driven, *trackers: Contact, topic: TopicId = TOPIC, near: bool = False) -> list[Any]:
    return member.join(topic, trackers, 4, near, False)


def join_message(*neighbors: PeerId, topic: TopicId = TOPIC) -> Join:
    return Join(topic, neighbors, ME, 4, False, False)


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


def test_from_joining_to_the_first_neighbor() -> None:
    member = Driven(MemberConfig(), ME)
    assert join(member, TRACKER) == [Hold(T, hints(T), "tracker"), SetTimer(2.0, FailoverDue(TOPIC))]
    assert up(member, T) == [
        CancelTimer(FailoverDue(TOPIC)),
        Send(T, join_message()),
        SetTimer(10.0, JoinDue(TOPIC)),
    ]
    assert hear(member, T, instruction(1, A)) == [
        CancelTimer(JoinDue(TOPIC)),
        SetTimer(30.0, ReportDue(TOPIC)),
        Hold(A, hints(A), TOPIC.hex()),
        SetTimer(15.0, ConnectDue(TOPIC)),
        StorageKnown(TOPIC, ()),
    ]
    assert up(member, A) == [Send(A, EdgeOpen(TOPIC))]
    assert hear(member, A, EdgeOpen(TOPIC)) == [
        NeighborUp(TOPIC, A),
        CancelTimer(ConnectDue(TOPIC)),
        note(A),
        Send(T, status(1, A)),
    ]
    assert member.neighbors(TOPIC) == (A,)
    assert member.tracker(TOPIC) == T
    assert member.member.topics == (TOPIC,)


def test_joining_twice_changes_nothing_and_other_wishes_are_told() -> None:
    member = joined()
    assert join(member, TRACKER) == []
    assert member.join(TOPIC, (TRACKER,), 4, False, True) == [
        CancelTimer(FailoverDue(TOPIC)),
        Send(T, Join(TOPIC, (A,), ME, 4, True, False)),
        SetTimer(10.0, JoinDue(TOPIC)),
    ]
    # The owner names another tracker: neighbours stay.
    assert member.join(TOPIC, (STANDBY,), 4, False, True) == [
        Hold(S, hints(S), "tracker"),
        SetTimer(2.0, FailoverDue(TOPIC)),
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
    assert [timer.timer for timer in timers] == [kind(TOPIC) for kind in TIMERS]
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
        CancelTimer(FailoverDue(OTHER_TOPIC)),
        Send(T, join_message(topic=OTHER_TOPIC)),
        SetTimer(10.0, JoinDue(OTHER_TOPIC)),
    ]
    assert Release(T, "tracker") not in member.leave(TOPIC, 0.0)
    assert Release(T, "tracker") in member.leave(OTHER_TOPIC, 0.0)


def test_a_lost_neighbor_is_reported_at_once() -> None:
    member = joined()
    assert down(member, A) == [
        NeighborDown(TOPIC, A),
        SetTimer(10.0, RetryDue(TOPIC)),
        note(),
        Send(T, status(1)),
    ]


def test_failed_dials_are_reported() -> None:
    member = joined()
    hear(member, T, instruction(2, A, B))
    assert member.handle(DialFailed(B, Reason.DIAL_TIMEOUT), 0.0) == [
        CancelTimer(ConnectDue(TOPIC)),
        SetTimer(10.0, RetryDue(TOPIC)),
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
    assert member.member.is_reachable is None


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
    heard = table_of((TrackerClient,)).messages
    assert not {Join, Leave, Status, StatusAll} & set(heard)


def test_an_unanswered_join_is_repeated() -> None:
    member = Driven(MemberConfig(), ME)
    join(member, TRACKER)
    up(member, T)
    assert fire(member, JoinDue) == [
        CancelTimer(FailoverDue(TOPIC)),
        Send(T, join_message()),
        SetTimer(10.0, JoinDue(TOPIC)),
    ]
    down(member, T)
    assert fire(member, JoinDue) == []


def test_a_refusal_is_told_once_and_tried_again_later() -> None:
    member = Driven(MemberConfig(), ME)
    join(member, TRACKER)
    up(member, T)
    assert hear(member, T, Refusal(TOPIC, Reason.TOO_MANY)) == [
        SetTimer(20.0, JoinDue(TOPIC)),
        JoinRefused(TOPIC, Reason.TOO_MANY),
    ]
    assert hear(member, T, Refusal(TOPIC, Reason.TOO_MANY)) == [SetTimer(20.0, JoinDue(TOPIC))]


def test_round_trip_times_are_reported_in_time() -> None:
    member = joined()
    assert member.note_rtt(A, 0.05) == []
    assert fire(member, ReportDue) == [
        SetTimer(30.0, ReportDue(TOPIC)),
        Send(T, Status(1, TopicStatus(TOPIC, (NeighborStatus(A, 50_000),)))),
    ]
    member.note_rtt(B, 0.01)
    down(member, A)
    up(member, A)
    hear(member, A, EdgeOpen(TOPIC))
    assert Send(T, status(1, A)) in fire(member, ReportDue)


def test_topology_aware_topics_report_a_first_time_soon() -> None:
    member = Driven(MemberConfig(), ME)
    join(member, TRACKER, near=True)
    up(member, T)
    hear(member, T, instruction(1, A))
    up(member, A)
    assert member.note_rtt(A, 0.05) == [SetTimer(1.0, ReportDue(TOPIC))]
    assert member.note_rtt(A, 0.06) == []
    assert member.note_rtt(B, 0.06) == []


def test_reachability_is_kept_and_recorded() -> None:
    member = joined()
    assert hear(member, T, Reachability(Reason.DIAL_TIMEOUT)) == [
        Record(Kind.CONTROL, peer=T, reason=Reason.UNREACHABLE_INBOUND, note="dial_timeout")
    ]
    assert member.member.reachability == Reachability(Reason.DIAL_TIMEOUT)
    assert member.member.is_reachable is False
    assert hear(member, T, Reachability(None)) == [Record(Kind.CONTROL, peer=T, note="reachable")]
    assert member.member.is_reachable is True


def test_a_tracker_that_stays_away_is_replaced_by_its_standby() -> None:
    member = joined(TRACKER, STANDBY)
    assert down(member, T) == [SetTimer(2.0, FailoverDue(TOPIC))]
    assert fire(member, FailoverDue) == [
        Hold(S, hints(S), "tracker"),
        SetTimer(20.0, ReturnDue(TOPIC)),
        SetTimer(2.0, FailoverDue(TOPIC)),
    ]
    assert member.tracker(TOPIC) == S
    # The standby learns what stands, and counts from the beginning.
    assert up(member, S) == [
        CancelTimer(FailoverDue(TOPIC)),
        Send(S, join_message(A)),
        SetTimer(10.0, JoinDue(TOPIC)),
    ]
    assert hear(member, S, instruction(1, A)) == [
        CancelTimer(JoinDue(TOPIC)),
        SetTimer(30.0, ReportDue(TOPIC)),
        CancelTimer(ConnectDue(TOPIC)),
        Send(S, status(1, A)),
    ]
    assert member.neighbors(TOPIC) == (A,)
    # The first is asked again from time to time.
    assert fire(member, ReturnDue) == [SetTimer(20.0, ReturnDue(TOPIC))]
    assert up(member, T) == []
    assert fire(member, ReturnDue) == [
        CancelTimer(FailoverDue(TOPIC)),
        Send(T, join_message(A)),
        SetTimer(10.0, JoinDue(TOPIC)),
        Send(S, Leave(TOPIC, moved=True)),
        Release(S, "tracker"),
        CancelTimer(ReturnDue(TOPIC)),
    ]
    assert member.tracker(TOPIC) == T
    assert member.neighbors(TOPIC) == (A,)


def test_a_first_tracker_that_comes_late_is_preferred_to_a_standby_that_has_not_answered() -> None:
    member = Driven(MemberConfig(), ME)
    join(member, TRACKER, STANDBY)
    fire(member, FailoverDue)
    assert up(member, T) == [
        CancelTimer(FailoverDue(TOPIC)),
        Send(T, join_message()),
        SetTimer(10.0, JoinDue(TOPIC)),
        Release(S, "tracker"),
        CancelTimer(ReturnDue(TOPIC)),
    ]


def test_a_link_that_comes_back_in_time_only_joins_again() -> None:
    member = joined(TRACKER, STANDBY)
    down(member, T)
    assert up(member, T) == [
        CancelTimer(FailoverDue(TOPIC)),
        Send(T, join_message(A)),
        SetTimer(10.0, JoinDue(TOPIC)),
    ]
    assert fire(member, FailoverDue) == []
    # Perhaps it was started anew, and has forgotten its counters.
    assert Send(T, status(1, A)) in hear(member, T, instruction(1, A))


def test_with_all_trackers_away_each_is_asked_in_turn_and_the_node_is_told() -> None:
    member = Driven(MemberConfig(), ME)
    join(member, TRACKER, STANDBY)
    fire(member, FailoverDue)
    assert fire(member, FailoverDue) == [
        JoinRefused(TOPIC, Reason.UNREACHABLE),
        Release(S, "tracker"),
        SetTimer(2.0, FailoverDue(TOPIC)),
    ]
    assert fire(member, FailoverDue) == [
        Hold(S, hints(S), "tracker"),
        SetTimer(20.0, ReturnDue(TOPIC)),
        SetTimer(2.0, FailoverDue(TOPIC)),
    ]
    alone = Driven(MemberConfig(), ME)
    join(alone, TRACKER)
    assert fire(alone, FailoverDue) == [
        JoinRefused(TOPIC, Reason.UNREACHABLE),
        SetTimer(2.0, FailoverDue(TOPIC)),
    ]
    assert fire(alone, FailoverDue) == [SetTimer(2.0, FailoverDue(TOPIC))]


def test_without_a_tracker_neighbors_are_kept_and_come_back() -> None:
    member = joined()
    down(member, T)
    assert down(member, A) == [NeighborDown(TOPIC, A), SetTimer(10.0, RetryDue(TOPIC)), note()]
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
        SetTimer(0.2, StatusDue(T)),
    ]
    one, other = NeighborStatus(A, None), NeighborStatus(B, None)
    assert fire(member, StatusDue, T) == [
        Send(T, StatusAll((TopicStatus(TOPIC, (one,)), TopicStatus(OTHER_TOPIC, (other,)))))
    ]
    down(member, A)
    assert CancelTimer(StatusDue(T)) in down(member, T)
    assert fire(member, StatusDue, T) == []


@pytest.mark.parametrize("due", TIMERS)
def test_timers_of_a_topic_that_was_left_do_nothing(due: type[TopicTimer]) -> None:
    member = joined()
    assert fire(member, due, OTHER_TOPIC) == []
    if due not in (ReportDue, JoinDue):
        assert fire(member, due) == []


WISH = TopicOptions(TOPIC, (Contact(T, hints(T)), Contact(S, hints(S))), 6, True, False)


def membership_of(config: MemberConfig, links: dict[PeerId, None], out: Outbox | None = None) -> Membership:
    out = out or Outbox()
    return Membership(WISH, config, links, out, Adjacency(out))


def test_the_switch_chooses_the_protocol() -> None:
    assert isinstance(membership_of(MemberConfig(), {}).follower, CounterFollower)
    naive = MemberConfig(control=Control.NAIVE)
    assert isinstance(membership_of(naive, {}).follower, NaiveFollower)


def test_it_tells_what_stands() -> None:
    links: dict[PeerId, None] = {A: None, B: None}
    membership = membership_of(MemberConfig(), links)
    assert membership.make_join(("tls://me:1",)) == Join(TOPIC, (), ("tls://me:1",), 6, False, True)
    membership.follow_instruction(Instruction(TOPIC, 1, (Contact(A), Contact(B)), ()), 0.0)
    membership.follower.handle_open(A)
    membership.follower.handle_open(B)
    assert membership.neighbors == (A, B)
    assert membership.make_join(()) == Join(TOPIC, (A, B), (), 6, False, True)
    assert membership.make_status({B: 0.0425}) == TopicStatus(
        TOPIC, (NeighborStatus(A, None), NeighborStatus(B, 42500))
    )


def test_storage_nodes_are_told_when_they_are_others() -> None:
    out = Outbox()
    membership = membership_of(MemberConfig(), {}, out)
    one, two = (Contact(A, hints(A)),), (Contact(B, hints(B)),)
    assert StorageKnown(TOPIC, one) in said(
        out, membership.follow_instruction, Instruction(TOPIC, 5, (), one), 0.0
    )
    assert membership.storage_nodes == one
    again = said(out, membership.follow_instruction, Instruction(TOPIC, 6, (), one), 0.0)
    assert not any(isinstance(effect, StorageKnown) for effect in again)
    # A stale instruction tells stale things.
    membership.follow_instruction(Instruction(TOPIC, 4, (), two), 0.0)
    assert membership.storage_nodes == one


def test_turning_to_another_tracker_keeps_neighbors_and_forgets_the_counter() -> None:
    membership = membership_of(MemberConfig(), {A: None})
    assert membership.tracker == membership.first == WISH.trackers[0]
    membership.follow_instruction(Instruction(TOPIC, 9, (Contact(A),), ()), 0.0)
    membership.follower.handle_open(A)
    membership.follow_tracker(1)
    assert membership.tracker == WISH.trackers[1]
    assert membership.first == WISH.trackers[0]
    assert not membership.is_instructed
    assert membership.follower.counter is None
    assert membership.neighbors == (A,)
