"""The node's side of the tracker overlay: joins topics, follows instructions, survives its trackers.

It never dials. It holds peers (`Hold`), and the machine that keeps links dials them; what comes
of it returns as `LinkUp`, `LinkDown` and `DialFailed`.
"""

from __future__ import annotations

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_input, on_message, on_timer
from linnet.overlay.adjacency import Adjacency
from linnet.overlay.config import Control, MemberConfig
from linnet.overlay.membership import Membership, Wish
from linnet.overlay.messages import (
    STATUS_TOPICS,
    EdgeClose,
    EdgeOpen,
    Instruction,
    Leave,
    Reachability,
    Refusal,
    Status,
    StatusAll,
)
from linnet.overlay.notices import JoinRefused
from linnet.overlay.status_queue import StatusQueue
from linnet.overlay.timers import (
    ConnectDue,
    FailoverDue,
    JoinDue,
    ReportDue,
    RetryDue,
    ReturnDue,
    StatusDue,
)
from linnet.trace.records import Kind, Record

TRACKER = "tracker"
"""The purpose for which trackers are held; neighbours are held for their topic, in hex."""

_REPORT_SOON = 1.0
"""Seconds until a first round-trip time is reported in a topology-aware topic, which waits for it."""

_TIMERS = (FailoverDue, ReturnDue, JoinDue, ReportDue, ConnectDue, RetryDue)


class Member(Part):
    """All topics of a node."""

    def __init__(
        self, config: MemberConfig, out: Outbox, adjacency: Adjacency, listens: tuple[str, ...] = ()
    ) -> None:
        self._config = config
        self._out = out
        self._adjacency = adjacency
        self._listens = listens
        self._links: dict[PeerId, None] = {}
        self._rtts: dict[PeerId, float] = {}
        self._memberships: dict[TopicId, Membership] = {}
        self._tracker_holds: dict[PeerId, int] = {}
        self._queue = StatusQueue(config.status_delay, out)
        self.reachable: bool | None = None
        """Whether a tracker could dial us back; None: not known yet."""
        self.reachable_reason: Reason | None = None

    @property
    def topics(self) -> tuple[TopicId, ...]:
        """The topics that were joined."""
        return tuple(self._memberships)

    def neighbors(self, topic: TopicId) -> tuple[PeerId, ...]:
        """The neighbours of a topic whose links are open."""
        membership = self._memberships.get(topic)
        return () if membership is None else membership.neighbors

    def tracker(self, topic: TopicId) -> PeerId | None:
        """The tracker that is followed in a topic."""
        membership = self._memberships.get(topic)
        return None if membership is None else membership.tracker.peer

    def is_unreachable(self, topic: TopicId) -> bool:
        """Whether nobody can dial us and no neighbour is in sight: others who only dial never meet us."""
        membership = self._memberships.get(topic)
        if membership is None or membership.follower.edges.wanted:
            return False
        return not self._listens or self.reachable is False

    def storage_nodes(self, topic: TopicId) -> tuple[Contact, ...]:
        """The storage nodes that the tracker named last."""
        membership = self._memberships.get(topic)
        return () if membership is None else membership.storage_nodes

    def join(
        self,
        topic: TopicId,
        trackers: tuple[Contact, ...],
        degree: int,
        near: bool,
        storage: bool,
        now: float,
    ) -> None:
        """Want neighbours in a topic; trackers in order of preference.

        Once more with other wishes, it tells them the tracker, or moves to the trackers that are
        named now; neighbours stay.
        """
        if not trackers:
            self._out.notify(JoinRefused(topic, Reason.NO_ADDRESS))
            return
        wish = Wish(topic, trackers, degree, near, storage)
        membership = self._memberships.get(topic)
        if membership is not None:
            if membership.wish != wish:
                self._rewish(membership, wish)
            return
        membership = Membership(wish, self._config, self._links, self._out, self._adjacency)
        self._memberships[topic] = membership
        self._hold_tracker(membership.first)
        self._turn_to(membership, 0)

    def leave(self, topic: TopicId, now: float) -> None:
        """Want no neighbours in a topic any more."""
        membership = self._memberships.pop(topic, None)
        if membership is None:
            return
        had = membership.neighbors
        if membership.tracker.peer in self._links:
            self._out.send(membership.tracker.peer, Leave(topic, moved=False))
        for peer in list(membership.follower.edges.wanted):
            membership.follower.edges.drop(peer)
        for timer in _TIMERS:
            self._out.cancel_timer(timer(topic))
        self._release_tracker(membership.first.peer)
        if membership.chosen:
            self._release_tracker(membership.tracker.peer)
        if had:
            self._out.record(_overlay(topic, ()))

    def note_rtt(self, peer: PeerId, seconds: float) -> None:
        """The round-trip time of a link was measured; trackers get it with the next report."""
        is_first = peer not in self._rtts
        if peer in self._links:
            self._rtts[peer] = seconds
        if not is_first:
            return
        for topic, membership in self._memberships.items():
            if membership.wish.near and peer in membership.follower.edges.wanted:
                self._out.set_timer(_REPORT_SOON, ReportDue(topic))

    # Links.

    @on_input(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Join at a tracker that is there, and open edges to a neighbour."""
        peer = event.peer
        if self._adjacency.is_left_out(peer):
            return
        self._links[peer] = None
        for membership in self._memberships.values():
            if peer == membership.tracker.peer:
                self._turn_to(membership, membership.chosen)
            elif peer == membership.first.peer and not membership.is_instructed:
                self._go_back(membership)
            before = membership.neighbors
            membership.follower.handle_link_up(peer)
            self._conclude(membership, before)

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """Turn to another tracker if this one stays away; edges to a neighbour are gone."""
        peer = event.peer
        if self._adjacency.is_left_out(peer):
            return
        self._links.pop(peer, None)
        self._rtts.pop(peer, None)
        self._queue.drop(peer)
        for membership in self._memberships.values():
            if peer == membership.tracker.peer:
                self._out.set_timer(self._config.failover_after, FailoverDue(membership.topic))
            before = membership.neighbors
            membership.follower.handle_link_down(peer)
            self._conclude(membership, before)

    @on_input(DialFailed)
    def handle_dial_failed(self, event: DialFailed, now: float) -> None:
        """A neighbour could not be reached."""
        if event.peer in self._links or self._adjacency.is_left_out(event.peer):
            return
        for membership in self._memberships.values():
            before = membership.neighbors
            membership.follower.handle_dial_failed(event.peer)
            self._conclude(membership, before)

    # Messages.

    @on_message(Instruction)
    def follow_instruction(self, peer: PeerId, message: Instruction, now: float) -> None:
        """The tracker of a topic says who the neighbours are."""
        topic = message.topic
        membership = self._memberships.get(topic)
        if membership is None:
            # It has not heard, or not yet, that we left.
            self._out.record(_rejected(topic, peer, Reason.NOT_JOINED))
            self._out.send(peer, Leave(topic, moved=False))
            return
        if peer != membership.tracker.peer:
            self._out.record(_rejected(topic, peer, Reason.NOT_RESPONSIBLE))
            return
        if not membership.is_instructed:
            self._out.cancel_timer(JoinDue(topic))
            self._out.set_timer(self._config.report_period, ReportDue(topic))
        before = membership.neighbors
        membership.instruct(message, now)
        self._conclude(membership, before)

    @on_message(Refusal)
    def note_refusal(self, peer: PeerId, message: Refusal, now: float) -> None:
        """The tracker of a topic takes nobody more."""
        topic = message.topic
        membership = self._memberships.get(topic)
        if membership is None or peer != membership.tracker.peer:
            self._out.record(_rejected(topic, peer, Reason.NOT_RESPONSIBLE))
            return
        self._out.set_timer(self._config.return_period, JoinDue(topic))
        if not membership.is_refused:
            membership.is_refused = True
            self._out.notify(JoinRefused(topic, message.reason))

    @on_message(EdgeOpen)
    def open_edge(self, peer: PeerId, message: EdgeOpen, now: float) -> None:
        """A peer counts us as a neighbour."""
        topic = message.topic
        membership = self._memberships.get(topic)
        if membership is None:
            self._out.record(_rejected(topic, peer, Reason.NOT_JOINED))
            self._out.send(peer, EdgeClose(topic))
            return
        before = membership.neighbors
        membership.follower.handle_open(peer)
        self._conclude(membership, before)

    @on_message(EdgeClose)
    def close_edge(self, peer: PeerId, message: EdgeClose, now: float) -> None:
        """A peer counts us as a neighbour no longer."""
        membership = self._memberships.get(message.topic)
        if membership is not None:
            before = membership.neighbors
            membership.follower.handle_close(peer)
            self._conclude(membership, before)

    @on_message(Reachability)
    def note_reachability(self, peer: PeerId, message: Reachability, now: float) -> None:
        """A tracker has tried to dial us."""
        if peer not in self._tracker_holds:
            return
        reason = message.reason
        self.reachable = reason is None
        self.reachable_reason = reason
        if reason is None:
            self._out.record(Record(Kind.CONTROL, peer=peer, note="reachable"))
        else:
            note = str(reason)
            self._out.record(Record(Kind.CONTROL, peer=peer, reason=Reason.UNREACHABLE_INBOUND, note=note))

    # Timers.

    @on_timer(StatusDue)
    def send_status(self, timer: StatusDue, now: float) -> None:
        """Send what has waited for a tracker."""
        self._queue.send(timer.tracker)

    @on_timer(JoinDue)
    def join_again(self, timer: JoinDue, now: float) -> None:
        """Ask the tracker of a topic once more."""
        membership = self._memberships.get(timer.topic)
        if membership is not None:
            self._ask(membership)

    @on_timer(ReportDue)
    def report_rtts(self, timer: ReportDue, now: float) -> None:
        """Tell the tracker of a topic the round-trip times."""
        membership = self._memberships.get(timer.topic)
        if membership is not None:
            membership.follower.report()
            self._out.set_timer(self._config.report_period, ReportDue(timer.topic))
            self._conclude(membership, membership.neighbors)

    @on_timer(ConnectDue)
    def end_connecting(self, timer: ConnectDue, now: float) -> None:
        """Tell the tracker of a topic what came of its instruction by now."""
        membership = self._memberships.get(timer.topic)
        if membership is not None:
            before = membership.neighbors
            membership.follower.handle_connect_due(now)
            self._conclude(membership, before)

    @on_timer(RetryDue)
    def retry_missing(self, timer: RetryDue, now: float) -> None:
        """Try once more for neighbours of a topic that are missing."""
        membership = self._memberships.get(timer.topic)
        if membership is not None:
            before = membership.neighbors
            membership.follower.handle_retry_due()
            self._conclude(membership, before)

    @on_timer(FailoverDue)
    def fail_over(self, timer: FailoverDue, now: float) -> None:
        """The tracker's link stayed down: ask the next. Neighbours stay as they are."""
        membership = self._memberships.get(timer.topic)
        if membership is None or membership.tracker.peer in self._links:
            return
        old, following = membership.chosen, (membership.chosen + 1) % len(membership.wish.trackers)
        if following == 0 and not membership.is_refused:
            membership.is_refused = True
            self._out.notify(JoinRefused(membership.topic, Reason.UNREACHABLE))
        if following:
            self._hold_tracker(membership.wish.trackers[following])
            if not old:
                self._out.set_timer(self._config.return_period, ReturnDue(membership.topic))
        if old:
            self._release_tracker(membership.tracker.peer)
        self._turn_to(membership, following)

    @on_timer(ReturnDue)
    def return_to_first(self, timer: ReturnDue, now: float) -> None:
        """Go back to the tracker that comes first, if its link is up again."""
        membership = self._memberships.get(timer.topic)
        if membership is None or membership.chosen == 0:
            return
        if membership.first.peer in self._links:
            self._go_back(membership)
        else:
            self._out.set_timer(self._config.return_period, ReturnDue(membership.topic))

    # Trackers.

    def _rewish(self, membership: Membership, wish: Wish) -> None:
        old, membership.wish = membership.wish, wish
        if old.trackers == wish.trackers:
            self._ask(membership)
            return
        followed = old.trackers[membership.chosen].peer
        self._hold_tracker(membership.first)
        self._turn_to(membership, 0)
        if followed in self._links and followed != membership.first.peer:
            self._out.send(followed, Leave(membership.topic, moved=True))
        self._release_tracker(old.trackers[0].peer)
        if followed != old.trackers[0].peer:
            self._release_tracker(followed)

    def _turn_to(self, membership: Membership, chosen: int) -> None:
        """Follow a tracker that is held: join at once, or when its link is up."""
        membership.turn_to(chosen)
        if membership.tracker.peer in self._links:
            self._ask(membership)
        else:
            self._out.set_timer(self._config.failover_after, FailoverDue(membership.topic))

    def _ask(self, membership: Membership) -> None:
        """Join at the tracker that is followed, and once more if no answer comes."""
        if membership.tracker.peer not in self._links:
            return
        self._out.cancel_timer(FailoverDue(membership.topic))
        self._out.send(membership.tracker.peer, membership.join_message(self._listens))
        self._out.set_timer(self._config.retry_period, JoinDue(membership.topic))

    def _go_back(self, membership: Membership) -> None:
        standby = membership.tracker.peer
        self._turn_to(membership, 0)
        if standby in self._links:
            self._out.send(standby, Leave(membership.topic, moved=True))
        self._release_tracker(standby)
        self._out.cancel_timer(ReturnDue(membership.topic))

    def _conclude(self, membership: Membership, before: tuple[PeerId, ...]) -> None:
        """After what the follower asked: a record of other neighbours, then the status that is due."""
        neighbors = membership.neighbors
        if neighbors is not before and neighbors != before:
            self._out.record(_overlay(membership.topic, neighbors))
        if not membership.follower.status_due:
            return
        membership.follower.status_due = False
        tracker = membership.tracker.peer
        if tracker not in self._links:
            return
        if self._config.control is Control.NAIVE:
            self._queue.put(tracker, self._statuses(tracker))
            return
        counter = membership.follower.counter
        if counter is not None:
            self._out.send(tracker, Status(counter, membership.status(self._rtts)))

    def _statuses(self, tracker: PeerId) -> tuple[StatusAll, ...]:
        """The state of every topic that this tracker has given us instructions for."""
        topics = [
            membership.status(self._rtts)
            for membership in self._memberships.values()
            if membership.tracker.peer == tracker and membership.is_instructed
        ]
        starts = range(0, len(topics), STATUS_TOPICS)
        return tuple(StatusAll(tuple(topics[start : start + STATUS_TOPICS])) for start in starts)

    def _hold_tracker(self, tracker: Contact) -> None:
        count = self._tracker_holds.get(tracker.peer, 0)
        self._tracker_holds[tracker.peer] = count + 1
        if not count:
            self._out.hold(tracker.peer, tracker.hints, TRACKER)

    def _release_tracker(self, peer: PeerId) -> None:
        count = self._tracker_holds.pop(peer)
        if count > 1:
            self._tracker_holds[peer] = count - 1
        else:
            self._out.release(peer, TRACKER)


def _overlay(topic: TopicId, neighbors: tuple[PeerId, ...]) -> Record:
    note = ",".join([peer[:4].hex() for peer in neighbors])
    return Record(Kind.OVERLAY, topic, note=note)


def _rejected(topic: TopicId, peer: PeerId, reason: Reason) -> Record:
    return Record(Kind.REJECTED, topic, peer=peer, reason=reason)
