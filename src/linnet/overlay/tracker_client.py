"""The node's side of the tracker overlay: joins topics, follows instructions, fails over between trackers.

It never dials. It holds peers (`Hold`), and the machine that keeps links dials them; the outcome returns as
`LinkUp`, `LinkDown` and `DialFailed`.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.limits import NEIGHBORS
from linnet.core.reasons import Reason
from linnet.core.timers import TopicTimer
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_input, on_message, on_timer
from linnet.overlay.config import Control, MemberConfig
from linnet.overlay.control_counter import CounterFollower
from linnet.overlay.control_naive import NaiveFollower, StatusDue, StatusQueue
from linnet.overlay.edges import ConnectDue, Edges, RetryDue
from linnet.overlay.messages import (
    STATUS_TOPICS,
    AskMembers,
    EdgeClose,
    EdgeOpen,
    Instruction,
    Join,
    Leave,
    Members,
    NeighborStatus,
    Reachability,
    Refusal,
    Status,
    StatusAll,
    TopicStatus,
)
from linnet.overlay.notices import Adjacency, JoinRefused, MembersKnown, StorageKnown
from linnet.trace.records import Kind, Record


class FailoverDue(TopicTimer, frozen=True):
    """Fires when the link to the tracker of a topic has been down for long enough to ask the next."""


class ReturnDue(TopicTimer, frozen=True):
    """Fires when it is time to check whether the first tracker of a topic is back."""


class JoinDue(TopicTimer, frozen=True):
    """Fires when a tracker that has not answered, or has refused, is to be asked once more."""


class ReportDue(TopicTimer, frozen=True):
    """Fires when it is time to report round-trip times in a topic."""


SAMPLING = "samples"
"""The protocol of those who name members of a topic beside the neighbours."""

TRACKER = "tracker"
"""The purpose for which trackers are held; neighbours are held for their topic, in hex."""

_REPORT_SOON = 1.0
"""Seconds until the first round-trip time of a link is reported in a topology-aware topic, which waits for
it."""

_TIMERS = (FailoverDue, ReturnDue, JoinDue, ReportDue, ConnectDue, RetryDue)


class TopicOptions(Struct, frozen=True, gc=False):
    """How a node takes part in a topic."""

    topic: TopicId
    trackers: tuple[Contact, ...]
    """The trackers in order of preference."""
    degree: int
    """The number of neighbours that the tracker is asked for."""
    near: bool = False
    """Whether nearby neighbours are preferred."""
    storage: bool = False
    """Whether this node keeps the topic."""


class Membership:
    """The state of one topic at a node."""

    def __init__(
        self,
        options: TopicOptions,
        config: MemberConfig,
        links: Mapping[PeerId, None],
        out: Outbox,
        adjacency: Adjacency,
    ) -> None:
        self._out = out
        self.options = options
        self.topic = options.topic
        self.chosen = 0
        """The index of the tracker that is followed; 0 is the preferred one."""
        self.is_instructed = False
        """Whether the tracker that is followed has answered."""
        self.is_refused = False
        """Whether the machine above was told that no tracker accepts us."""
        self.recorded: tuple[PeerId, ...] = ()
        """The neighbours when they were last recorded."""
        self.is_storage_told = False
        self.storage_nodes: tuple[Contact, ...] = ()
        edges = Edges(options.topic, links, out, adjacency)
        follow = CounterFollower if config.control is Control.COUNTER else NaiveFollower
        self.follower: CounterFollower | NaiveFollower = follow(options.topic, config, edges, out)

    @property
    def tracker(self) -> Contact:
        """The tracker that is followed."""
        return self.options.trackers[self.chosen]

    @property
    def first(self) -> Contact:
        """The preferred tracker."""
        return self.options.trackers[0]

    @property
    def neighbors(self) -> tuple[PeerId, ...]:
        """The neighbours that are up."""
        return self.follower.edges.neighbors

    def follow_tracker(self, chosen: int) -> None:
        """Follow this tracker from now on."""
        self.chosen = chosen
        self.is_instructed = False
        self.follower.forget_counter()

    def make_join(self, listens: tuple[str, ...]) -> Join:
        """Make the join for the tracker; it names present neighbours, so that they are kept."""
        wants = self.options
        return Join(self.topic, self.neighbors[:NEIGHBORS], listens, wants.degree, wants.storage, wants.near)

    def follow_instruction(self, instruction: Instruction, now: float) -> None:
        """Follow an instruction of the tracker, and announce the storage nodes that it names."""
        self.is_instructed = True
        self.is_refused = False
        self.follower.follow_instruction(instruction, now)
        # That there is none is news too, the first time.
        is_news = not self.is_storage_told or instruction.storage != self.storage_nodes
        if instruction.counter == self.follower.counter and is_news:
            self.is_storage_told = True
            self.storage_nodes = instruction.storage
            self._out.notify(StorageKnown(self.topic, self.storage_nodes))

    def make_status(self, rtts: Mapping[PeerId, float]) -> TopicStatus:
        """Return the status of the present neighbours."""
        neighbors = [
            NeighborStatus(peer, round(rtts[peer] * 1e6) if peer in rtts else None)
            for peer in self.neighbors[:NEIGHBORS]
        ]
        return TopicStatus(self.topic, tuple(neighbors))


class TrackerClient(Part):
    """Takes part in the topics of a node at their trackers."""

    def __init__(
        self, config: MemberConfig, out: Outbox, adjacency: Adjacency, listens: tuple[str, ...] = ()
    ) -> None:
        self._config = config
        self._out = out
        self._adjacency = adjacency
        self._listens = listens
        self._links: dict[PeerId, None] = {}
        self._sampling: dict[PeerId, None] = {}
        """Linked peers that name members of a topic, if they are its tracker."""
        self._rtts: dict[PeerId, float] = {}
        self._memberships: dict[TopicId, Membership] = {}
        self._tracker_holds: dict[PeerId, int] = {}
        self._queue = StatusQueue(config.status_delay, out)
        self.reachability: Reachability | None = None
        """The outcome of a tracker's dialling us back; None: not known yet."""

    @property
    def topics(self) -> tuple[TopicId, ...]:
        """The topics that were joined."""
        return tuple(self._memberships)

    @property
    def is_reachable(self) -> bool | None:
        """Whether a tracker could dial us back; None: not known yet."""
        return None if self.reachability is None else self.reachability.reason is None

    def neighbors(self, topic: TopicId) -> tuple[PeerId, ...]:
        """Return the neighbours of a topic whose links are open."""
        membership = self._memberships.get(topic)
        return () if membership is None else membership.neighbors

    def tracker(self, topic: TopicId) -> PeerId | None:
        """Return the tracker that is followed in a topic."""
        membership = self._memberships.get(topic)
        return None if membership is None else membership.tracker.peer

    def is_unreachable(self, topic: TopicId) -> bool:
        """Return whether nobody can dial us and we have no neighbour: nodes that only dial never meet us."""
        membership = self._memberships.get(topic)
        if membership is None or membership.follower.edges.wanted:
            return False
        return not self._listens or self.is_reachable is False

    def storage_nodes(self, topic: TopicId) -> tuple[Contact, ...]:
        """Return the storage nodes that the tracker named last."""
        membership = self._memberships.get(topic)
        return () if membership is None else membership.storage_nodes

    def join(self, options: TopicOptions, now: float) -> None:
        """Take part in a topic.

        Call it again with other options to change them at the tracker, or to move to the trackers that are
        named now; neighbours stay.
        """
        topic = options.topic
        if not options.trackers:
            self._out.notify(JoinRefused(topic, Reason.NO_ADDRESS))
            return
        membership = self._memberships.get(topic)
        if membership is not None:
            if membership.options != options:
                self._change_options(membership, options)
            return
        membership = Membership(options, self._config, self._links, self._out, self._adjacency)
        self._memberships[topic] = membership
        self._hold_tracker(membership.first)
        self._follow_tracker(membership, 0)

    def leave(self, topic: TopicId, now: float) -> None:
        """Take part in a topic no longer."""
        membership = self._memberships.pop(topic, None)
        if membership is None:
            return
        had = membership.neighbors
        if membership.tracker.peer in self._links:
            self._out.send(membership.tracker.peer, Leave(topic, moved=False))
        for peer in list(membership.follower.edges.wanted):
            membership.follower.edges.drop_edge(peer)
        for timer in _TIMERS:
            self._out.cancel_timer(timer(topic))
        self._release_tracker(membership.first.peer)
        if membership.chosen:
            self._release_tracker(membership.tracker.peer)
        if had:
            self._out.record(_overlay(topic, ()))

    def note_rtt(self, peer: PeerId, seconds: float) -> None:
        """Note the measured round-trip time of a link; trackers get it with the next report."""
        is_first = peer not in self._rtts
        if peer in self._links:
            self._rtts[peer] = seconds
        if not is_first:
            return
        for topic, membership in self._memberships.items():
            if membership.options.near and peer in membership.follower.edges.wanted:
                self._out.set_timer(_REPORT_SOON, ReportDue(topic))

    # Links.

    @on_input(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Join at a tracker whose link is open, and open edges to a neighbour."""
        peer = event.peer
        if self._adjacency.is_left_out(peer):
            return
        self._links[peer] = None
        if SAMPLING in event.hello.protocols:
            self._sampling[peer] = None
        for membership in self._memberships.values():
            if peer == membership.tracker.peer:
                self._follow_tracker(membership, membership.chosen)
            elif peer == membership.first.peer and not membership.is_instructed:
                self._go_back(membership)
            membership.follower.handle_link_up(peer)
            self._conclude(membership)

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """Ask another tracker if the link to this one stays closed; lower edges to a neighbour."""
        peer = event.peer
        if self._adjacency.is_left_out(peer):
            return
        self._links.pop(peer, None)
        self._sampling.pop(peer, None)
        self._rtts.pop(peer, None)
        self._queue.drop_status(peer)
        for membership in self._memberships.values():
            if peer == membership.tracker.peer:
                self._out.set_timer(self._config.failover_after, FailoverDue(membership.topic))
            membership.follower.handle_link_down(peer)
            self._conclude(membership)

    @on_input(DialFailed)
    def handle_dial_failed(self, event: DialFailed, now: float) -> None:
        """Give up edges to a neighbour that could not be reached."""
        if event.peer in self._links or self._adjacency.is_left_out(event.peer):
            return
        for membership in self._memberships.values():
            membership.follower.handle_dial_failed(event.peer)
            self._conclude(membership)

    # Messages.

    @on_message(Instruction)
    def follow_instruction(self, peer: PeerId, message: Instruction, now: float) -> None:
        """Follow an instruction of the tracker of a topic."""
        topic = message.topic
        membership = self._memberships.get(topic)
        if membership is None:
            # It has not heard yet that we left.
            self._out.record(_rejected(topic, peer, Reason.NOT_JOINED))
            self._out.send(peer, Leave(topic, moved=False))
            return
        if peer != membership.tracker.peer:
            self._out.record(_rejected(topic, peer, Reason.NOT_RESPONSIBLE))
            return
        if not membership.is_instructed:
            self._out.cancel_timer(JoinDue(topic))
            self._out.set_timer(self._config.report_period, ReportDue(topic))
        membership.follow_instruction(message, now)
        self._conclude(membership)

    @on_message(Refusal)
    def note_refusal(self, peer: PeerId, message: Refusal, now: float) -> None:
        """Note that the tracker of a topic refuses us, and ask again later."""
        topic = message.topic
        membership = self._memberships.get(topic)
        if membership is None or peer != membership.tracker.peer:
            self._out.record(_rejected(topic, peer, Reason.NOT_RESPONSIBLE))
            return
        self._out.set_timer(self._config.return_period, JoinDue(topic))
        if not membership.is_refused:
            membership.is_refused = True
            self._out.notify(JoinRefused(topic, message.reason))

    def ask_members(self, topic: TopicId) -> bool:
        """Ask the tracker of a topic for some of its members; return whether it can be asked now."""
        membership = self._memberships.get(topic)
        if (
            membership is None
            or not membership.is_instructed
            or membership.tracker.peer not in self._sampling
        ):
            return False
        self._out.send(membership.tracker.peer, AskMembers(topic))
        return True

    @on_message(Members)
    def note_members(self, peer: PeerId, message: Members, now: float) -> None:
        """Pass on the members that the tracker of a topic names."""
        membership = self._memberships.get(message.topic)
        if membership is None or peer != membership.tracker.peer:
            self._out.record(_rejected(message.topic, peer, Reason.NOT_RESPONSIBLE))
            return
        self._out.notify(MembersKnown(message.topic, message.contacts))

    def replace_neighbor(self, topic: TopicId, peer: PeerId) -> bool:
        """Give up a neighbour and have its tracker name another; return whether it was one."""
        membership = self._memberships.get(topic)
        if membership is None or not membership.follower.give_up_neighbor(peer):
            return False
        self._conclude(membership)
        return True

    @on_message(EdgeOpen)
    def open_edge(self, peer: PeerId, message: EdgeOpen, now: float) -> None:
        """Note that a peer counts us as a neighbour."""
        topic = message.topic
        membership = self._memberships.get(topic)
        if membership is None:
            self._out.record(_rejected(topic, peer, Reason.NOT_JOINED))
            self._out.send(peer, EdgeClose(topic))
            return
        membership.follower.handle_open(peer)
        self._conclude(membership)

    @on_message(EdgeClose)
    def close_edge(self, peer: PeerId, message: EdgeClose, now: float) -> None:
        """Note that a peer counts us as a neighbour no longer."""
        membership = self._memberships.get(message.topic)
        if membership is not None:
            membership.follower.handle_close(peer)
            self._conclude(membership)

    @on_message(Reachability)
    def note_reachability(self, peer: PeerId, message: Reachability, now: float) -> None:
        """Note whether a tracker could dial us."""
        if peer not in self._tracker_holds:
            return
        self.reachability = message
        if message.reason is None:
            self._out.record(Record(Kind.CONTROL, peer=peer, note="reachable"))
        else:
            note = str(message.reason)
            self._out.record(Record(Kind.CONTROL, peer=peer, reason=Reason.UNREACHABLE_INBOUND, note=note))

    # Timers.

    @on_timer(StatusDue)
    def send_status(self, timer: StatusDue, now: float) -> None:
        """Send the status that waits for a tracker."""
        self._queue.send_status(timer.tracker)

    @on_timer(JoinDue)
    def join_again(self, timer: JoinDue, now: float) -> None:
        """Ask the tracker of a topic once more."""
        membership = self._memberships.get(timer.topic)
        if membership is not None:
            self._join_at_tracker(membership)

    @on_timer(ReportDue)
    def report_rtts(self, timer: ReportDue, now: float) -> None:
        """Report round-trip times to the tracker of a topic."""
        membership = self._memberships.get(timer.topic)
        if membership is not None:
            membership.follower.report_rtts()
            self._out.set_timer(self._config.report_period, ReportDue(timer.topic))
            self._conclude(membership)

    @on_timer(ConnectDue)
    def end_connecting(self, timer: ConnectDue, now: float) -> None:
        """Report to the tracker of a topic how its instruction has ended by now."""
        membership = self._memberships.get(timer.topic)
        if membership is not None:
            membership.follower.handle_connect_due(now)
            self._conclude(membership)

    @on_timer(RetryDue)
    def retry_missing(self, timer: RetryDue, now: float) -> None:
        """Try once more for neighbours of a topic that are missing."""
        membership = self._memberships.get(timer.topic)
        if membership is not None:
            membership.follower.handle_retry_due()
            self._conclude(membership)

    @on_timer(FailoverDue)
    def fail_over(self, timer: FailoverDue, now: float) -> None:
        """Ask the next tracker, since the link to this one stayed closed. Neighbours stay."""
        membership = self._memberships.get(timer.topic)
        if membership is None or membership.tracker.peer in self._links:
            return
        old, following = membership.chosen, (membership.chosen + 1) % len(membership.options.trackers)
        if following == 0 and not membership.is_refused:
            membership.is_refused = True
            self._out.notify(JoinRefused(membership.topic, Reason.UNREACHABLE))
        if following:
            self._hold_tracker(membership.options.trackers[following])
            if not old:
                self._out.set_timer(self._config.return_period, ReturnDue(membership.topic))
        if old:
            self._release_tracker(membership.tracker.peer)
        self._follow_tracker(membership, following)

    @on_timer(ReturnDue)
    def return_to_first(self, timer: ReturnDue, now: float) -> None:
        """Go back to the preferred tracker, if its link is open again."""
        membership = self._memberships.get(timer.topic)
        if membership is None or membership.chosen == 0:
            return
        if membership.first.peer in self._links:
            self._go_back(membership)
        else:
            self._out.set_timer(self._config.return_period, ReturnDue(membership.topic))

    # Trackers.

    def _change_options(self, membership: Membership, options: TopicOptions) -> None:
        old, membership.options = membership.options, options
        if old.trackers == options.trackers:
            self._join_at_tracker(membership)
            return
        followed = old.trackers[membership.chosen].peer
        self._hold_tracker(membership.first)
        self._follow_tracker(membership, 0)
        if followed in self._links and followed != membership.first.peer:
            self._out.send(followed, Leave(membership.topic, moved=True))
        self._release_tracker(old.trackers[0].peer)
        if followed != old.trackers[0].peer:
            self._release_tracker(followed)

    def _follow_tracker(self, membership: Membership, chosen: int) -> None:
        """Follow a tracker that is held: join at once, or when its link opens."""
        membership.follow_tracker(chosen)
        if membership.tracker.peer in self._links:
            self._join_at_tracker(membership)
        else:
            self._out.set_timer(self._config.failover_after, FailoverDue(membership.topic))

    def _join_at_tracker(self, membership: Membership) -> None:
        """Join at the tracker that is followed, and again if no answer comes."""
        if membership.tracker.peer not in self._links:
            return
        self._out.cancel_timer(FailoverDue(membership.topic))
        self._out.send(membership.tracker.peer, membership.make_join(self._listens))
        self._out.set_timer(self._config.retry_period, JoinDue(membership.topic))

    def _go_back(self, membership: Membership) -> None:
        standby = membership.tracker.peer
        self._follow_tracker(membership, 0)
        if standby in self._links:
            self._out.send(standby, Leave(membership.topic, moved=True))
        self._release_tracker(standby)
        self._out.cancel_timer(ReturnDue(membership.topic))

    def _conclude(self, membership: Membership) -> None:
        """Record the neighbours if they have changed, then send the status that is due."""
        before, neighbors = membership.recorded, membership.neighbors
        if neighbors is not before and neighbors != before:
            self._out.record(_overlay(membership.topic, neighbors))
        membership.recorded = neighbors
        if not membership.follower.status_due:
            return
        membership.follower.status_due = False
        tracker = membership.tracker.peer
        if tracker not in self._links:
            return
        if self._config.control is Control.NAIVE:
            self._queue.put_status(tracker, self._statuses(tracker))
            return
        counter = membership.follower.counter
        if counter is not None:
            self._out.send(tracker, Status(counter, membership.make_status(self._rtts)))

    def _statuses(self, tracker: PeerId) -> tuple[StatusAll, ...]:
        """Return the states of all topics in which this tracker has instructed us."""
        topics = [
            membership.make_status(self._rtts)
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
