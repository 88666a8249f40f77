"""The node's side of the tracker overlay: joins topics, follows instructions, survives its trackers.

It never dials. It holds peers (`Hold`), and the machine that keeps links dials them; what comes
of it returns as `LinkUp`, `LinkDown` and `DialFailed`.
"""

from __future__ import annotations

from typing import assert_never

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp, Probed, Received, TimerFired
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.overlay.config import Control, MemberConfig
from linnet.overlay.effects import MemberEffect, OverlayInput
from linnet.overlay.follower import OWNER
from linnet.overlay.membership import Membership, Wish
from linnet.overlay.messages import (
    STATUS_TOPICS,
    EdgeClose,
    EdgeOpen,
    Instruction,
    Join,
    Leave,
    OverlayMessage,
    Reachability,
    Refusal,
    Status,
    StatusAll,
)
from linnet.overlay.notices import JoinRefused
from linnet.overlay.status_queue import StatusQueue
from linnet.trace.records import Kind, Record

TRACKER = "tracker"
"""The purpose for which trackers are held; neighbours are held for their topic, in hex."""

_REPORT_SOON = 1.0
"""Seconds until a first round-trip time is reported in a topology-aware topic, which waits for it."""

_TIMERS = ("failover", "return", "join", "report", "connect", "retry")


class Member:
    """All topics of a node. Every call returns effects and notices, in one order."""

    def __init__(self, config: MemberConfig, listens: tuple[str, ...] = ()) -> None:
        self._config = config
        self._listens = listens
        self._links: dict[PeerId, None] = {}
        self._rtts: dict[PeerId, float] = {}
        self._memberships: dict[TopicId, Membership] = {}
        self._tracker_holds: dict[PeerId, int] = {}
        self._queue = StatusQueue(config.status_delay)
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
    ) -> list[MemberEffect]:
        """Want neighbours in a topic; trackers in order of preference.

        Once more with other wishes, it tells them the tracker, or moves to the trackers that are
        named now; neighbours stay.
        """
        if not trackers:
            return [JoinRefused(topic, Reason.NO_ADDRESS)]
        wish = Wish(topic, trackers, degree, near, storage)
        membership = self._memberships.get(topic)
        if membership is not None:
            return [] if membership.wish == wish else self._rewish(membership, wish)
        membership = self._memberships[topic] = Membership(wish, self._config, self._links)
        return self._hold_tracker(membership.first) + self._turn_to(membership, 0)

    def leave(self, topic: TopicId, now: float) -> list[MemberEffect]:
        """Want no neighbours in a topic any more."""
        membership = self._memberships.pop(topic, None)
        if membership is None:
            return []
        effects: list[MemberEffect] = []
        had = membership.neighbors
        if membership.tracker.peer in self._links:
            effects.append(Send(membership.tracker.peer, Leave(topic, moved=False)))
        for peer in list(membership.follower.edges.wanted):
            effects += membership.follower.edges.drop(peer)
        effects += [CancelTimer(_tick(what, topic)) for what in _TIMERS]
        effects += self._release_tracker(membership.first.peer)
        if membership.chosen:
            effects += self._release_tracker(membership.tracker.peer)
        if had:
            effects.append(_overlay(topic, ()))
        return effects

    def rtt(self, peer: PeerId, seconds: float) -> list[MemberEffect]:
        """The round-trip time of a link was measured; trackers get it with the next report."""
        is_first = peer not in self._rtts
        if peer in self._links:
            self._rtts[peer] = seconds
        if not is_first:
            return []
        return [
            SetTimer(_REPORT_SOON, _tick("report", topic))
            for topic, membership in self._memberships.items()
            if membership.wish.near and peer in membership.follower.edges.wanted
        ]

    def handle(self, event: OverlayInput, now: float) -> list[MemberEffect]:
        """Apply one input; the caller performs the effects, in order."""
        match event:
            case Received():
                return self._receive(event.peer, event.message, now)
            case LinkUp(peer):
                return self._link_up(peer)
            case LinkDown(peer, _):
                return self._link_down(peer)
            case DialFailed(peer, _):
                return self._dial_failed(peer)
            case TimerFired(Tick(_, what, key)):
                return self._fire(what, key, now)
            case Probed():
                return []
            case _:
                assert_never(event)

    def _link_up(self, peer: PeerId) -> list[MemberEffect]:
        self._links[peer] = None
        effects: list[MemberEffect] = []
        for membership in self._memberships.values():
            if peer == membership.tracker.peer:
                effects += self._turn_to(membership, membership.chosen)
            elif peer == membership.first.peer and not membership.is_instructed:
                effects += self._go_back(membership)
            effects += self._following(membership, membership.neighbors, membership.follower.linked(peer))
        return effects

    def _link_down(self, peer: PeerId) -> list[MemberEffect]:
        self._links.pop(peer, None)
        self._rtts.pop(peer, None)
        effects: list[MemberEffect] = self._queue.drop(peer)
        for membership in self._memberships.values():
            if peer == membership.tracker.peer:
                effects.append(SetTimer(self._config.failover_after, _tick("failover", membership.topic)))
            effects += self._following(membership, membership.neighbors, membership.follower.unlinked(peer))
        return effects

    def _dial_failed(self, peer: PeerId) -> list[MemberEffect]:
        effects: list[MemberEffect] = []
        if peer in self._links:
            return effects
        for membership in self._memberships.values():
            before = membership.neighbors
            effects += self._following(membership, before, membership.follower.dial_failed(peer))
        return effects

    def _receive(self, peer: PeerId, message: OverlayMessage, now: float) -> list[MemberEffect]:
        match message:
            case Instruction(topic):
                return self._instructed(peer, topic, message, now)
            case Refusal(topic, reason):
                return self._refused(peer, topic, reason)
            case EdgeOpen(topic):
                return self._edge_opened(peer, topic)
            case EdgeClose(topic):
                membership = self._memberships.get(topic)
                if membership is None:
                    return []
                return self._following(membership, membership.neighbors, membership.follower.closed(peer))
            case Reachability(reason):
                return self._told_reachability(peer, reason)
            case Join() | Leave() | Status() | StatusAll():
                # The node's other half, its tracker machine, is meant by these.
                return []
            case _:
                assert_never(message)

    def _instructed(
        self, peer: PeerId, topic: TopicId, instruction: Instruction, now: float
    ) -> list[MemberEffect]:
        membership = self._memberships.get(topic)
        if membership is None:
            # It has not heard, or not yet, that we left.
            return [_rejected(topic, peer, Reason.NOT_JOINED), Send(peer, Leave(topic, moved=False))]
        if peer != membership.tracker.peer:
            return [_rejected(topic, peer, Reason.NOT_RESPONSIBLE)]
        effects: list[MemberEffect] = []
        if not membership.is_instructed:
            effects.append(CancelTimer(_tick("join", topic)))
            effects.append(SetTimer(self._config.report_period, _tick("report", topic)))
        before = membership.neighbors
        return effects + self._following(membership, before, membership.instruct(instruction, now))

    def _edge_opened(self, peer: PeerId, topic: TopicId) -> list[MemberEffect]:
        membership = self._memberships.get(topic)
        if membership is None:
            return [_rejected(topic, peer, Reason.NOT_JOINED), Send(peer, EdgeClose(topic))]
        return self._following(membership, membership.neighbors, membership.follower.opened(peer))

    def _refused(self, peer: PeerId, topic: TopicId, reason: Reason) -> list[MemberEffect]:
        membership = self._memberships.get(topic)
        if membership is None or peer != membership.tracker.peer:
            return [_rejected(topic, peer, Reason.NOT_RESPONSIBLE)]
        effects: list[MemberEffect] = [SetTimer(self._config.return_period, _tick("join", topic))]
        if not membership.is_refused:
            membership.is_refused = True
            effects.append(JoinRefused(topic, reason))
        return effects

    def _told_reachability(self, peer: PeerId, reason: Reason | None) -> list[MemberEffect]:
        if peer not in self._tracker_holds:
            return []
        self.reachable = reason is None
        self.reachable_reason = reason
        if reason is None:
            return [Record(Kind.CONTROL, peer=peer, note="reachable")]
        return [Record(Kind.CONTROL, peer=peer, reason=Reason.UNREACHABLE_INBOUND, note=str(reason))]

    def _fire(self, what: str, key: bytes, now: float) -> list[MemberEffect]:
        if what == StatusQueue.WHAT:
            return self._queue.fire(PeerId(key))
        membership = self._memberships.get(TopicId(key))
        if membership is None:
            return []
        match what:
            case "failover":
                return self._fail_over(membership)
            case "return":
                return self._return(membership)
            case "join":
                return self._ask(membership)
            case "report":
                membership.follower.report()
                again = SetTimer(self._config.report_period, _tick("report", membership.topic))
                return self._following(membership, membership.neighbors, [again])
            case _:
                before = membership.neighbors
                return self._following(membership, before, membership.follower.fired(what, now))

    def _rewish(self, membership: Membership, wish: Wish) -> list[MemberEffect]:
        old, membership.wish = membership.wish, wish
        if old.trackers == wish.trackers:
            return self._ask(membership)
        followed = old.trackers[membership.chosen].peer
        effects = self._hold_tracker(membership.first) + self._turn_to(membership, 0)
        if followed in self._links and followed != membership.first.peer:
            effects.append(Send(followed, Leave(membership.topic, moved=True)))
        effects += self._release_tracker(old.trackers[0].peer)
        if followed != old.trackers[0].peer:
            effects += self._release_tracker(followed)
        return effects

    def _turn_to(self, membership: Membership, chosen: int) -> list[MemberEffect]:
        """Follow a tracker that is held: join at once, or when its link is up."""
        membership.turn_to(chosen)
        if membership.tracker.peer in self._links:
            return self._ask(membership)
        return [SetTimer(self._config.failover_after, _tick("failover", membership.topic))]

    def _ask(self, membership: Membership) -> list[MemberEffect]:
        """Join at the tracker that is followed, and once more if no answer comes."""
        if membership.tracker.peer not in self._links:
            return []
        again = SetTimer(self._config.retry_period, _tick("join", membership.topic))
        return [
            CancelTimer(_tick("failover", membership.topic)),
            Send(membership.tracker.peer, membership.join_message(self._listens)),
            again,
        ]

    def _fail_over(self, membership: Membership) -> list[MemberEffect]:
        """The tracker's link stayed down: ask the next. Neighbours stay as they are."""
        if membership.tracker.peer in self._links:
            return []
        effects: list[MemberEffect] = []
        old, following = membership.chosen, (membership.chosen + 1) % len(membership.wish.trackers)
        if following == 0 and not membership.is_refused:
            membership.is_refused = True
            effects.append(JoinRefused(membership.topic, Reason.UNREACHABLE))
        if following:
            effects += self._hold_tracker(membership.wish.trackers[following])
            if not old:
                effects.append(SetTimer(self._config.return_period, _tick("return", membership.topic)))
        if old:
            effects += self._release_tracker(membership.tracker.peer)
        return effects + self._turn_to(membership, following)

    def _return(self, membership: Membership) -> list[MemberEffect]:
        """Go back to the tracker that comes first, if its link is up again."""
        if membership.chosen == 0:
            return []
        if membership.first.peer not in self._links:
            return [SetTimer(self._config.return_period, _tick("return", membership.topic))]
        return self._go_back(membership)

    def _go_back(self, membership: Membership) -> list[MemberEffect]:
        standby = membership.tracker.peer
        effects = self._turn_to(membership, 0)
        if standby in self._links:
            effects.append(Send(standby, Leave(membership.topic, moved=True)))
        effects += self._release_tracker(standby)
        effects.append(CancelTimer(_tick("return", membership.topic)))
        return effects

    def _following(
        self, membership: Membership, before: tuple[PeerId, ...], effects: list[MemberEffect]
    ) -> list[MemberEffect]:
        """What the follower asked, then a record of other neighbours, then the status that is due."""
        neighbors = membership.neighbors
        if neighbors is not before and neighbors != before:
            effects.append(_overlay(membership.topic, neighbors))
        if not membership.follower.status_due:
            return effects
        membership.follower.status_due = False
        tracker = membership.tracker.peer
        if tracker not in self._links:
            return effects
        if self._config.control is Control.NAIVE:
            return effects + self._queue.put(tracker, self._statuses(tracker))
        counter = membership.follower.counter
        if counter is not None:
            effects.append(Send(tracker, Status(counter, membership.status(self._rtts))))
        return effects

    def _statuses(self, tracker: PeerId) -> tuple[StatusAll, ...]:
        """The state of every topic that this tracker has given us instructions for."""
        topics = [
            membership.status(self._rtts)
            for membership in self._memberships.values()
            if membership.tracker.peer == tracker and membership.is_instructed
        ]
        starts = range(0, len(topics), STATUS_TOPICS)
        return tuple(StatusAll(tuple(topics[start : start + STATUS_TOPICS])) for start in starts)

    def _hold_tracker(self, tracker: Contact) -> list[MemberEffect]:
        count = self._tracker_holds.get(tracker.peer, 0)
        self._tracker_holds[tracker.peer] = count + 1
        return [] if count else [Hold(tracker.peer, tracker.hints, TRACKER)]

    def _release_tracker(self, peer: PeerId) -> list[MemberEffect]:
        count = self._tracker_holds.pop(peer)
        if count > 1:
            self._tracker_holds[peer] = count - 1
            return []
        return [Release(peer, TRACKER)]


def _tick(what: str, topic: TopicId) -> Tick:
    return Tick(OWNER, what, topic)


def _overlay(topic: TopicId, neighbors: tuple[PeerId, ...]) -> Record:
    note = ",".join([peer[:4].hex() for peer in neighbors])
    return Record(Kind.OVERLAY, topic, note=note)


def _rejected(topic: TopicId, peer: PeerId, reason: Reason) -> Record:
    return Record(Kind.REJECTED, topic, peer=peer, reason=reason)
