"""The tracker: tells the nodes of a topic who their neighbours are.

Both control protocols of the thesis (Juslenius 2021, section 4.3) are here. With counters, an
instruction carries one, a status of any other is stale, and a status that lacks an expected
neighbour has the link replaced. Without (`Control.NAIVE`), a status overwrites what the tracker
believes, whatever it left out or has too many of.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import assert_never

from linnet.core.effects import CancelTimer, Send, SetTimer
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp, Probed, Received, TimerFired
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.overlay.config import Control, TrackerConfig
from linnet.overlay.coordinates import Coordinates
from linnet.overlay.effects import OverlayInput, TrackerEffect
from linnet.overlay.messages import (
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
    TopicStatus,
)
from linnet.overlay.reachability import Callee
from linnet.overlay.tracked import Graph, Tracked
from linnet.trace.records import Kind, Record

OWNER = "tracker"
"""Owner of this machine's timers."""

_RESEND_AFTER = 5.0
"""Seconds after which a stale status means that the instruction was lost, not that it is under way."""

_STORAGE_DELAY = 1.0
"""Seconds that news of storage nodes is gathered before all nodes of a topic are told."""

_RELAXATIONS = 4
"""Looks at all round-trip samples of a topic before each round of exchanges."""

_TIMERS = ("settle", "await", "failed", "near", "storage")


class _Node(Callee):
    """A node that is linked, or has a place somewhere."""

    __slots__ = ("counter", "linked", "topics")

    def __init__(self) -> None:
        super().__init__()
        self.linked = False
        self.counter = 0
        """Of the latest instruction in any topic: one counter outlives leaving and joining again."""
        self.topics: dict[TopicId, None] = {}


class Tracker:
    """Builds and mends the graphs of all topics whose nodes come to this tracker."""

    def __init__(self, config: TrackerConfig, rng: Random) -> None:
        self._config = config
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

    def handle(self, event: OverlayInput, now: float) -> list[TrackerEffect]:
        """Apply one input; the caller performs the effects, in order."""
        match event:
            case Received(peer, message):
                return self._receive(peer, message, now)
            case LinkDown(peer, _):
                return self._lose(peer, now)
            case Probed(peer, reason):
                return self._probed(peer, reason, now)
            case TimerFired(Tick(_, what, key)):
                return self._fire(what, TopicId(key), now)
            case LinkUp() | DialFailed():
                # A node that is linked says so by joining; a tracker dials nobody.
                return []
            case _:
                assert_never(event)

    def _receive(self, peer: PeerId, message: OverlayMessage, now: float) -> list[TrackerEffect]:
        match message:
            case Join():
                return self._join(peer, message, now)
            case Leave(topic, moved):
                return self._leave(peer, topic, moved, now)
            case Status(counter, status):
                return self._status(peer, counter, status, now)
            case StatusAll(statuses):
                return [effect for status in statuses for effect in self._believe(peer, status, now)]
            case Instruction() | Refusal() | EdgeOpen() | EdgeClose() | Reachability():
                # The node's other half, its member machine, is meant by these.
                return []
            case _:
                assert_never(message)

    def _join(self, peer: PeerId, join: Join, now: float) -> list[TrackerEffect]:
        topic = join.topic
        tracked = self._topics.get(topic)
        if self._is_full(tracked, peer):
            return [
                Send(peer, Refusal(topic, Reason.TOO_MANY)),
                _rejected(topic, peer, Reason.TOO_MANY, "join"),
            ]
        effects: list[TrackerEffect] = [_control(topic, peer, "join")]
        node = self._nodes.setdefault(peer, _Node())
        node.linked = True
        node.topics[topic] = None
        effects.extend(node.listen(peer, join.listens))
        if tracked is None:
            tracked = self._topics[topic] = Tracked(topic, join, self._config, self._rng, now)
            if tracked.near:
                effects.append(SetTimer(self._config.near_period, _tick("near", topic)))
        if tracked.must_settle(join, now):
            tracked.settle(now + self._config.settle)
            effects.append(SetTimer(self._config.settle, _tick("settle", topic)))
        was_storage = peer in tracked.storage
        nobody_awaited = not tracked.awaited
        changed = tracked.join(peer, join, node.is_dialable, now)
        if nobody_awaited and tracked.awaited:
            effects.append(SetTimer(self._config.expected, _tick("await", topic)))
        if join.storage != was_storage:
            effects.append(SetTimer(_STORAGE_DELAY, _tick("storage", topic)))
        return effects + self._instruct(tracked, [peer, *changed], now)

    def _is_full(self, tracked: Tracked | None, peer: PeerId) -> bool:
        if tracked is None:
            return len(self._topics) >= self._config.max_topics
        return peer not in tracked.places and len(tracked.places) >= self._config.max_nodes

    def _leave(self, peer: PeerId, topic: TopicId, moved: bool, now: float) -> list[TrackerEffect]:
        tracked = self._topics.get(topic)
        if tracked is None or peer not in tracked.places:
            return [_rejected(topic, peer, Reason.NOT_JOINED, "leave")]
        effects: list[TrackerEffect] = [_control(topic, peer, "move" if moved else "leave")]
        if moved:
            # Its links stand. They stay in the picture while others follow it to that tracker.
            return effects + self._await(tracked, peer, self._config.expected, now)
        return effects + self._remove(tracked, [peer], now)

    def _lose(self, peer: PeerId, now: float) -> list[TrackerEffect]:
        """The link to a node is gone; its places are kept for a while."""
        node = self._nodes.get(peer)
        if node is None:
            return []
        node.linked = False
        effects: list[TrackerEffect] = []
        for topic in node.topics:
            tracked = self._topics[topic]
            if peer not in tracked.awaited:
                effects += self._await(tracked, peer, self._config.grace, now)
        self._forget_if_gone(peer)
        return effects

    def _await(self, tracked: Tracked, peer: PeerId, seconds: float, now: float) -> list[TrackerEffect]:
        first = min(tracked.awaited.values(), default=None)
        tracked.lose(peer, now + seconds)
        if first is not None and first <= now + seconds:
            return []
        return [SetTimer(seconds, _tick("await", tracked.topic))]

    def _remove(self, tracked: Tracked, peers: Iterable[PeerId], now: float) -> list[TrackerEffect]:
        """Nodes have left for good; those next to them find others."""
        effects: list[TrackerEffect] = []
        changed: dict[PeerId, None] = {}
        for peer in peers:
            if peer in tracked.storage:
                effects.append(SetTimer(_STORAGE_DELAY, _tick("storage", tracked.topic)))
            changed.update(dict.fromkeys(tracked.leave(peer)))
            node = self._nodes.get(peer)
            if node is not None:
                node.topics.pop(tracked.topic, None)
                self._forget_if_gone(peer)
        if not tracked.places:
            del self._topics[tracked.topic]
            return [CancelTimer(_tick(what, tracked.topic)) for what in _TIMERS]
        return effects + self._instruct(tracked, [peer for peer in changed if peer in tracked.places], now)

    def _forget_if_gone(self, peer: PeerId) -> None:
        node = self._nodes[peer]
        if not node.linked and not node.topics:
            del self._nodes[peer]
            self._coordinates.forget(peer)

    def _status(self, peer: PeerId, counter: int, status: TopicStatus, now: float) -> list[TrackerEffect]:
        """Counter protocol: a status answers the instruction of its counter, or it is stale."""
        topic = status.topic
        tracked = self._topics.get(topic)
        place = None if tracked is None else tracked.places.get(peer)
        if tracked is None or place is None:
            return [_rejected(topic, peer, Reason.NOT_JOINED, f"status {counter}")]
        if self._config.control is not Control.COUNTER:
            return [_rejected(topic, peer, Reason.UNSUPPORTED, f"status {counter}")]
        if counter != place.counter or peer in tracked.awaited:
            note = f"status {counter}, newest {place.counter}"
            effects: list[TrackerEffect] = [_rejected(topic, peer, Reason.STALE, note)]
            if now - place.told_at >= _RESEND_AFTER:
                effects += self._instruct(tracked, [peer], now)
            return effects
        self._learn(tracked, peer, status)
        effects = [_control(topic, peer, f"status {counter}")]
        has = {neighbor.peer: None for neighbor in status.neighbors}
        missing = [other for other in tracked.topology.neighbors(peer) if other not in has]
        if not missing:
            return effects
        if tracked.next_forgetting() is None:
            effects.append(SetTimer(self._config.failed_pair_memory, _tick("failed", topic)))
        return effects + self._instruct(tracked, tracked.fail(peer, missing, now), now)

    def _believe(self, peer: PeerId, status: TopicStatus, now: float) -> list[TrackerEffect]:
        """Naive protocol: what a node reports is so, even if it reports before it has finished."""
        topic = status.topic
        tracked = self._topics.get(topic)
        if tracked is None or peer not in tracked.places:
            return [_rejected(topic, peer, Reason.NOT_JOINED, "status")]
        if self._config.control is not Control.NAIVE:
            return [_rejected(topic, peer, Reason.UNSUPPORTED, "status")]
        self._learn(tracked, peer, status)
        effects: list[TrackerEffect] = [_control(topic, peer, "status")]
        if tracked.settling:
            return effects
        changed = tracked.topology.reported(peer, (neighbor.peer for neighbor in status.neighbors))
        return effects + self._instruct(tracked, changed, now)

    def _learn(self, tracked: Tracked, peer: PeerId, status: TopicStatus) -> None:
        for other, rtt in tracked.note_rtts(peer, status.neighbors):
            self._coordinates.observe(peer, other, rtt)

    def _probed(self, peer: PeerId, reason: Reason | None, now: float) -> list[TrackerEffect]:
        node = self._nodes.get(peer)
        if node is None:
            return []
        again = node.probed(peer, reason)
        if again is not None:
            return list(again)
        effects: list[TrackerEffect] = []
        if node.linked:
            effects.append(Send(peer, Reachability(reason)))
        for topic in node.topics:
            tracked = self._topics[topic]
            effects += self._instruct(tracked, tracked.topology.set_dialable(peer, node.is_dialable), now)
        return effects

    def _fire(self, what: str, topic: TopicId, now: float) -> list[TrackerEffect]:
        tracked = self._topics.get(topic)
        if tracked is None:
            return []
        match what:
            case "settle":
                return self._instruct(tracked, tracked.build(), now)
            case "await":
                return self._end_waiting(tracked, now)
            case "failed":
                return self._forget_failures(tracked, now)
            case "storage":
                return self._instruct(tracked, tracked.with_old_storage(), now)
            case "near":
                return self._exchange(tracked, now)
            case _:
                return []

    def _end_waiting(self, tracked: Tracked, now: float) -> list[TrackerEffect]:
        over = [peer for peer, until in tracked.awaited.items() if until <= now]
        effects: list[TrackerEffect] = [_control(tracked.topic, peer, "lost") for peer in over]
        effects += self._remove(tracked, over, now)
        if tracked.awaited:
            following = min(tracked.awaited.values()) - now
            effects.append(SetTimer(following, _tick("await", tracked.topic)))
        return effects

    def _forget_failures(self, tracked: Tracked, now: float) -> list[TrackerEffect]:
        effects = self._instruct(tracked, tracked.forget_failures(now), now)
        following = tracked.next_forgetting()
        if following is not None:
            effects.append(SetTimer(following - now, _tick("failed", tracked.topic)))
        return effects

    def _exchange(self, tracked: Tracked, now: float) -> list[TrackerEffect]:
        changed: list[PeerId] = []
        if not tracked.settling:
            for _ in range(_RELAXATIONS):
                self._coordinates.relax(tracked.topology)
            changed = tracked.near_links.round(self._coordinates.estimate)
        again = SetTimer(self._config.near_period, _tick("near", tracked.topic))
        return [*self._instruct(tracked, changed, now), again]

    def _instruct(self, tracked: Tracked, peers: Iterable[PeerId], now: float) -> list[TrackerEffect]:
        """Tell nodes that are here who their neighbours are; nothing while a take-over settles."""
        effects: list[TrackerEffect] = []
        if tracked.settling:
            return effects
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
            effects.append(Send(peer, Instruction(tracked.topic, place.counter, neighbors, storage)))
            effects.append(_control(tracked.topic, peer, f"instruction {place.counter}"))
        return effects

    def _contact(self, peer: PeerId) -> Contact:
        node = self._nodes.get(peer)
        return Contact(peer) if node is None else node.contact(peer)


def _tick(what: str, topic: TopicId) -> Tick:
    return Tick(OWNER, what, topic)


def _control(topic: TopicId, peer: PeerId, note: str) -> Record:
    return Record(Kind.CONTROL, topic, peer=peer, note=note)


def _rejected(topic: TopicId, peer: PeerId, reason: Reason, note: str) -> Record:
    return Record(Kind.REJECTED, topic, peer=peer, reason=reason, note=note)
