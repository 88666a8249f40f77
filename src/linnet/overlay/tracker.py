"""The tracker: tells the nodes of a topic who their neighbours are.

Both control protocols of the thesis (Juslenius 2021, section 4.3) are here. With counters, an
instruction carries one, a status of any other is stale, and a status that lacks an expected
neighbour has the link replaced. Without (`Control.NAIVE`), a status overwrites what the tracker
believes, whatever it left out or has too many of.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import LinkDown, Probed
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_input, on_message, on_timer
from linnet.overlay.config import Control, TrackerConfig
from linnet.overlay.coordinates import Coordinates
from linnet.overlay.messages import (
    Instruction,
    Join,
    Leave,
    Reachability,
    Refusal,
    Status,
    StatusAll,
    TopicStatus,
)
from linnet.overlay.reachability import Callee
from linnet.overlay.tracked import Graph, Tracked
from linnet.trace.records import Kind, Record

_RESEND_AFTER = 5.0
"""Seconds after which a stale status means that the instruction was lost, not that it is under way."""

_STORAGE_DELAY = 1.0
"""Seconds that news of storage nodes is gathered before all nodes of a topic are told."""

_RELAXATIONS = 4
"""Looks at all round-trip samples of a topic before each round of exchanges."""


class SettleDue(Timer, frozen=True):
    """What stands in a topic that is taken over is known by now."""

    topic: TopicId


class AwaitDue(Timer, frozen=True):
    """The place of a node that is not here has been kept for long enough."""

    topic: TopicId


class ForgetDue(Timer, frozen=True):
    """Links that failed long ago may be tried again."""

    topic: TopicId


class NearDue(Timer, frozen=True):
    """Links of a topic are to be exchanged for nearer ones."""

    topic: TopicId


class StorageDue(Timer, frozen=True):
    """News of storage nodes of a topic has been gathered for long enough."""

    topic: TopicId


_TIMERS = (SettleDue, AwaitDue, ForgetDue, NearDue, StorageDue)


class _Node(Callee):
    """A node that is linked, or has a place somewhere."""

    __slots__ = ("counter", "linked", "topics")

    def __init__(self) -> None:
        super().__init__()
        self.linked = False
        self.counter = 0
        """Of the latest instruction in any topic: one counter outlives leaving and joining again."""
        self.topics: dict[TopicId, None] = {}


class Tracker(Part):
    """Builds and mends the graphs of all topics whose nodes come to this tracker."""

    def __init__(self, config: TrackerConfig, rng: Random, out: Outbox) -> None:
        self._config = config
        self._out = out
        self._rng = rng
        self._nodes: dict[PeerId, _Node] = {}
        self._topics: dict[TopicId, Tracked] = {}
        self._coordinates: Coordinates[PeerId] = Coordinates(rng)

    @property
    def topics(self) -> tuple[TopicId, ...]:
        """The topics that have nodes here."""
        return tuple(self._topics)

    def graph(self, topic: TopicId) -> Graph | None:
        """A topic as it stands; None if nobody joined it here."""
        tracked = self._topics.get(topic)
        return None if tracked is None else tracked.graph()

    # What nodes say.

    @on_message(Join)
    def handle_join(self, peer: PeerId, message: Join, now: float) -> None:
        """A node takes part in a topic, for the first time or again."""
        topic = message.topic
        tracked = self._topics.get(topic)
        if self._is_full(tracked, peer):
            self._out.send(peer, Refusal(topic, Reason.TOO_MANY))
            self._out.record(_rejected(topic, peer, Reason.TOO_MANY, "join"))
            return
        self._out.record(_control(topic, peer, "join"))
        node = self._nodes.setdefault(peer, _Node())
        node.linked = True
        node.topics[topic] = None
        node.note_addresses(peer, message.listens, self._out)
        if tracked is None:
            tracked = self._topics[topic] = Tracked(topic, message, self._config, self._rng, now)
            if tracked.near:
                self._out.set_timer(self._config.near_period, NearDue(topic))
        if tracked.must_settle(message, now):
            tracked.settle(now + self._config.settle)
            self._out.set_timer(self._config.settle, SettleDue(topic))
        was_storage = peer in tracked.storage
        nobody_awaited = not tracked.awaited
        changed = tracked.join(peer, message, node.is_dialable, now)
        if nobody_awaited and tracked.awaited:
            self._out.set_timer(self._config.expected, AwaitDue(topic))
        if message.storage != was_storage:
            self._out.set_timer(_STORAGE_DELAY, StorageDue(topic))
        self._instruct(tracked, [peer, *changed], now)

    @on_message(Leave)
    def handle_leave(self, peer: PeerId, message: Leave, now: float) -> None:
        """A node takes part no more, or at another tracker."""
        topic = message.topic
        tracked = self._topics.get(topic)
        if tracked is None or peer not in tracked.places:
            self._out.record(_rejected(topic, peer, Reason.NOT_JOINED, "leave"))
            return
        self._out.record(_control(topic, peer, "move" if message.moved else "leave"))
        if message.moved:
            # Its links stand. They stay in the picture while others follow it to that tracker.
            self._await(tracked, peer, self._config.expected, now)
        else:
            self._remove(tracked, [peer], now)

    @on_message(Status)
    def handle_status(self, peer: PeerId, message: Status, now: float) -> None:
        """Counter protocol: a status answers the instruction of its counter, or it is stale."""
        counter, status = message.counter, message.status
        topic = status.topic
        tracked = self._topics.get(topic)
        place = None if tracked is None else tracked.places.get(peer)
        if tracked is None or place is None:
            self._out.record(_rejected(topic, peer, Reason.NOT_JOINED, f"status {counter}"))
            return
        if self._config.control is not Control.COUNTER:
            self._out.record(_rejected(topic, peer, Reason.UNSUPPORTED, f"status {counter}"))
            return
        if counter != place.counter or peer in tracked.awaited:
            note = f"status {counter}, newest {place.counter}"
            self._out.record(_rejected(topic, peer, Reason.STALE, note))
            if now - place.told_at >= _RESEND_AFTER:
                self._instruct(tracked, [peer], now)
            return
        self._learn(tracked, peer, status)
        self._out.record(_control(topic, peer, f"status {counter}"))
        has = {neighbor.peer: None for neighbor in status.neighbors}
        missing = [other for other in tracked.topology.neighbors(peer) if other not in has]
        if not missing:
            return
        if tracked.next_forgetting() is None:
            self._out.set_timer(self._config.failed_pair_memory, ForgetDue(topic))
        self._instruct(tracked, tracked.fail(peer, missing, now), now)

    @on_message(StatusAll)
    def handle_statuses(self, peer: PeerId, message: StatusAll, now: float) -> None:
        """Naive protocol: what a node reports is so, even if it reports before it has finished."""
        for status in message.topics:
            self._believe(peer, status, now)

    # Links.

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """The link to a node is gone; its places are kept for a while."""
        peer = event.peer
        node = self._nodes.get(peer)
        if node is None:
            return
        node.linked = False
        for topic in node.topics:
            tracked = self._topics[topic]
            if peer not in tracked.awaited:
                self._await(tracked, peer, self._config.grace, now)
        self._forget_if_gone(peer)

    @on_input(Probed)
    def handle_probe(self, event: Probed, now: float) -> None:
        """An attempt to dial a node back has ended."""
        peer, reason = event.peer, event.reason
        node = self._nodes.get(peer)
        if node is None or not node.handle_probe(peer, reason, self._out):
            return
        if node.linked:
            self._out.send(peer, Reachability(reason))
        for topic in node.topics:
            tracked = self._topics[topic]
            self._instruct(tracked, tracked.topology.set_dialable(peer, node.is_dialable), now)

    # Timers.

    @on_timer(SettleDue)
    def build_graph(self, timer: SettleDue, now: float) -> None:
        """What stands in a topic is known: give its nodes neighbours."""
        tracked = self._topics.get(timer.topic)
        if tracked is not None:
            self._instruct(tracked, tracked.build(), now)

    @on_timer(AwaitDue)
    def end_waiting(self, timer: AwaitDue, now: float) -> None:
        """Give the places away of nodes that did not come back."""
        tracked = self._topics.get(timer.topic)
        if tracked is None:
            return
        over = [peer for peer, until in tracked.awaited.items() if until <= now]
        for peer in over:
            self._out.record(_control(tracked.topic, peer, "lost"))
        self._remove(tracked, over, now)
        if tracked.awaited:
            self._out.set_timer(min(tracked.awaited.values()) - now, AwaitDue(tracked.topic))

    @on_timer(ForgetDue)
    def forget_failures(self, timer: ForgetDue, now: float) -> None:
        """Let pairs whose link failed long ago be chosen again."""
        tracked = self._topics.get(timer.topic)
        if tracked is None:
            return
        self._instruct(tracked, tracked.forget_failures(now), now)
        following = tracked.next_forgetting()
        if following is not None:
            self._out.set_timer(following - now, ForgetDue(tracked.topic))

    @on_timer(StorageDue)
    def tell_storage(self, timer: StorageDue, now: float) -> None:
        """Tell those of a topic who know of storage nodes that have gone, or of too few."""
        tracked = self._topics.get(timer.topic)
        if tracked is not None:
            self._instruct(tracked, tracked.with_old_storage(), now)

    @on_timer(NearDue)
    def exchange_links(self, timer: NearDue, now: float) -> None:
        """Exchange links of a topic for nearer ones."""
        tracked = self._topics.get(timer.topic)
        if tracked is None:
            return
        changed: list[PeerId] = []
        if not tracked.settling:
            for _ in range(_RELAXATIONS):
                self._coordinates.relax(tracked.topology)
            changed = tracked.near_links.round(self._coordinates.estimate)
        self._instruct(tracked, changed, now)
        self._out.set_timer(self._config.near_period, NearDue(tracked.topic))

    # Topics.

    def _await(self, tracked: Tracked, peer: PeerId, seconds: float, now: float) -> None:
        first = min(tracked.awaited.values(), default=None)
        tracked.lose(peer, now + seconds)
        if first is None or first > now + seconds:
            self._out.set_timer(seconds, AwaitDue(tracked.topic))

    def _remove(self, tracked: Tracked, peers: Iterable[PeerId], now: float) -> None:
        """Nodes have left for good; those next to them find others."""
        changed: dict[PeerId, None] = {}
        is_storage_gone = False
        for peer in peers:
            is_storage_gone = is_storage_gone or peer in tracked.storage
            changed.update(dict.fromkeys(tracked.leave(peer)))
            node = self._nodes.get(peer)
            if node is not None:
                node.topics.pop(tracked.topic, None)
                self._forget_if_gone(peer)
        if not tracked.places:
            del self._topics[tracked.topic]
            for timer in _TIMERS:
                self._out.cancel_timer(timer(tracked.topic))
            return
        if is_storage_gone:
            self._out.set_timer(_STORAGE_DELAY, StorageDue(tracked.topic))
        self._instruct(tracked, [peer for peer in changed if peer in tracked.places], now)

    def _forget_if_gone(self, peer: PeerId) -> None:
        node = self._nodes[peer]
        if not node.linked and not node.topics:
            del self._nodes[peer]
            self._coordinates.forget(peer)

    def _believe(self, peer: PeerId, status: TopicStatus, now: float) -> None:
        topic = status.topic
        tracked = self._topics.get(topic)
        if tracked is None or peer not in tracked.places:
            self._out.record(_rejected(topic, peer, Reason.NOT_JOINED, "status"))
            return
        if self._config.control is not Control.NAIVE:
            self._out.record(_rejected(topic, peer, Reason.UNSUPPORTED, "status"))
            return
        self._learn(tracked, peer, status)
        self._out.record(_control(topic, peer, "status"))
        if not tracked.settling:
            changed = tracked.topology.reported(peer, (neighbor.peer for neighbor in status.neighbors))
            self._instruct(tracked, changed, now)

    def _learn(self, tracked: Tracked, peer: PeerId, status: TopicStatus) -> None:
        for other, rtt in tracked.note_rtts(peer, status.neighbors):
            self._coordinates.observe(peer, other, rtt)

    def _instruct(self, tracked: Tracked, peers: Iterable[PeerId], now: float) -> None:
        """Tell nodes that are here who their neighbours are; nothing while a take-over settles."""
        if tracked.settling:
            return
        for peer in dict.fromkeys(peers):
            if peer in tracked.awaited:
                continue
            node, place = self._nodes[peer], tracked.places[peer]
            node.counter += 1
            place.counter = node.counter
            place.told_at = now
            place.told_storage = tracked.storage_for(peer)
            neighbors = tuple(self._contact(other) for other in tracked.topology.neighbors(peer))
            storage = tuple(self._contact(other) for other in place.told_storage)
            self._out.send(peer, Instruction(tracked.topic, place.counter, neighbors, storage))
            self._out.record(_control(tracked.topic, peer, f"instruction {place.counter}"))

    def _is_full(self, tracked: Tracked | None, peer: PeerId) -> bool:
        if tracked is None:
            return len(self._topics) >= self._config.max_topics
        return peer not in tracked.places and len(tracked.places) >= self._config.max_nodes

    def _contact(self, peer: PeerId) -> Contact:
        node = self._nodes.get(peer)
        return Contact(peer) if node is None else node.contact(peer)


def _control(topic: TopicId, peer: PeerId, note: str) -> Record:
    return Record(Kind.CONTROL, topic, peer=peer, note=note)


def _rejected(topic: TopicId, peer: PeerId, reason: Reason, note: str) -> Record:
    return Record(Kind.REJECTED, topic, peer=peer, reason=reason, note=note)
