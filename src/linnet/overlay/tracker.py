"""The tracker: tells the nodes of a topic who their neighbours are.

Both control protocols of the thesis (Juslenius 2021, section 4.3) are here. In the counter protocol an
instruction carries a counter, a status with any other counter is stale, and a status that lacks an expected
neighbour has the link replaced. In the naive one (`Control.NAIVE`) a status overwrites the tracker's belief,
even if it reports too few neighbours or too many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from linnet.core.effects import Probe
from linnet.core.fair_shares import FairShares, Origins
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import LinkDown, Probed
from linnet.core.reasons import Reason
from linnet.core.timers import TopicTimer
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_input, on_message, on_timer
from linnet.overlay.config import Control, TrackerConfig
from linnet.overlay.locality import Coordinates
from linnet.overlay.messages import (
    AskMembers,
    Instruction,
    Join,
    Leave,
    Members,
    Reachability,
    Refusal,
    Status,
    StatusAll,
    TopicStatus,
)
from linnet.overlay.tracked_topic import Graph, TrackedTopic
from linnet.trace.records import Kind, Record

_RESEND_AFTER = 5.0
"""Seconds after which a stale status means that the instruction was lost, not that it is under way."""

_FORGET_PERIOD = 1.0
"""The fewest seconds between two looks for failed links that may be tried again."""

_STORAGE_DELAY = 1.0
"""Seconds that changes of storage nodes are gathered before all nodes of a topic are told."""

_RELAXATIONS = 4
"""Passes over all round-trip samples of a topic before each round of exchanges."""


class SettleDue(TopicTimer, frozen=True):
    """Fires when the existing links of a topic that is taken over are known."""


class AwaitDue(TopicTimer, frozen=True):
    """Fires when the place of an absent node has been kept for long enough."""


class ForgetDue(TopicTimer, frozen=True):
    """Fires when failed links are old enough to be tried again."""


class NearDue(TopicTimer, frozen=True):
    """Fires when links of a topic are to be exchanged for nearer ones."""


class StorageDue(TopicTimer, frozen=True):
    """Fires when changes of a topic's storage nodes have been gathered for long enough."""


_TIMERS = (SettleDue, AwaitDue, ForgetDue, NearDue, StorageDue)


class TrackedNode:
    """A node that is linked, or has a place in a topic; it is dialled back once at the addresses it gives."""

    __slots__ = (
        "_contact",
        "_hints",
        "counter",
        "failure",
        "founded",
        "is_probing",
        "linked",
        "peer",
        "topics",
        "was_moved",
    )

    def __init__(self, peer: PeerId) -> None:
        self.peer = peer
        self.linked = False
        self.counter = 0
        """The counter of the latest instruction in any topic: one counter outlives leaving and joining
        again."""
        self.topics: dict[TopicId, None] = {}
        """The topics in which it has a place, the latest last."""
        self.founded: dict[TopicId, None] = {}
        """Those that count as its own."""
        self.failure: Reason | None = None
        self.is_probing = False
        self.was_moved = False
        """Whether the node's addresses changed while it was dialled."""
        self._hints: tuple[str, ...] = ()
        self._contact = Contact(peer)

    @property
    def is_dialable(self) -> bool:
        """Whether others may dial the node; until it was dialled back, its own claim is believed."""
        return bool(self._hints) and self.failure is None

    @property
    def contact(self) -> Contact:
        """The contact that others are told; without addresses if these are of no use."""
        hints = self._hints if self.is_dialable else ()
        if self._contact.hints != hints:
            self._contact = Contact(self.peer, hints)
        return self._contact

    def note_addresses(self, hints: tuple[str, ...], out: Outbox) -> None:
        """Dial the node at the addresses that it gives, if these are new, one attempt at a time.

        One that could not be reached is dialled again when it comes back: it may have left before.
        """
        if hints == self._hints and (self.linked or self.failure is None):
            return
        self._hints = hints
        self.failure = None
        if self.is_probing:
            self.was_moved = True
        else:
            self._probe(out)

    def handle_probe(self, failure: Reason | None, out: Outbox) -> bool:
        """Note the outcome of an attempt; return False if the node has moved, and is dialled again."""
        self.is_probing = False
        if self.was_moved:
            self.was_moved = False
            self._probe(out)
            return False
        self.failure = failure
        return True

    def _probe(self, out: Outbox) -> None:
        if self._hints:
            self.is_probing = True
            out.add(Probe(self.peer, self._hints))


class Tracker(Part):
    """Builds and mends the graphs of all topics whose nodes come to this tracker."""

    def __init__(self, config: TrackerConfig, rng: Random, out: Outbox, origins: Origins) -> None:
        self._config = config
        self._origins = origins
        self._places = FairShares(config.max_places, origins)
        self._founded = FairShares(config.max_topics, origins)
        """How many topics count as whose: keys are free, and so are names of topics."""
        self._out = out
        self._rng = rng
        self._nodes: dict[PeerId, TrackedNode] = {}
        self._topics: dict[TopicId, TrackedTopic] = {}
        self._coordinates: Coordinates[PeerId] = Coordinates(rng)

    @property
    def topics(self) -> tuple[TopicId, ...]:
        """The topics that have nodes here."""
        return tuple(self._topics)

    def describe_graph(self, topic: TopicId) -> Graph | None:
        """Return the graph of a topic; None if nobody joined it here."""
        tracked = self._topics.get(topic)
        return None if tracked is None else tracked.describe_graph()

    # What nodes say.

    @on_message(Join)
    def handle_join(self, peer: PeerId, message: Join, now: float) -> None:
        """Give a node a place in a topic, for the first time or again."""
        topic = message.topic
        if not self._make_room(topic, peer, now):
            self._out.send(peer, Refusal(topic, Reason.TOO_MANY))
            self._out.record(_rejected(topic, peer, Reason.TOO_MANY, "join"))
            return
        tracked = self._topics.get(topic)
        self._out.record(_control(topic, peer, "join"))
        node = self._nodes.setdefault(peer, TrackedNode(peer))
        node.note_addresses(message.listens, self._out)
        node.linked = True
        node.topics[topic] = None
        if tracked is None:
            tracked = self._topics[topic] = TrackedTopic(
                topic, message, peer, self._config, self._rng, self._places, self._origins, now
            )
            node.founded[topic] = None
            self._founded.add(peer)
            if tracked.is_near:
                self._out.set_timer(self._config.near_period, NearDue(topic))
        if tracked.is_takeover(message, now):
            tracked.begin_settling()
            self._out.set_timer(self._config.settle, SettleDue(topic))
        was_storage = peer in tracked.storage
        nobody_awaited = not tracked.awaited
        changed = tracked.join_node(peer, message, node.is_dialable, now)
        if nobody_awaited and tracked.awaited:
            self._out.set_timer(self._config.expected, AwaitDue(topic))
        if message.storage != was_storage:
            self._out.set_timer(_STORAGE_DELAY, StorageDue(topic))
        self._instruct_nodes(tracked, [peer, *changed], now)

    @on_message(Leave)
    def handle_leave(self, peer: PeerId, message: Leave, now: float) -> None:
        """Remove a node that has left a topic, or keep its place if it went to another tracker."""
        topic = message.topic
        tracked = self._topics.get(topic)
        if tracked is None or peer not in tracked.places:
            self._out.record(_rejected(topic, peer, Reason.NOT_JOINED, "leave"))
            return
        self._out.record(_control(topic, peer, "move" if message.moved else "leave"))
        if message.moved:
            # Its links stand. They stay in the picture while others follow it to that tracker.
            self._keep_place(tracked, peer, self._config.expected, now)
        else:
            self._remove_nodes(tracked, [peer], now)

    @on_message(Status)
    def handle_status(self, peer: PeerId, message: Status, now: float) -> None:
        """Replace the links that are missing in a status of the counter protocol, unless it is stale."""
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
                self._instruct_nodes(tracked, [peer], now)
            return
        self._learn_rtts(tracked, peer, status)
        self._out.record(_control(topic, peer, f"status {counter}"))
        has = {neighbor.peer: None for neighbor in status.neighbors}
        missing = [other for other in tracked.graph.neighbors(peer) if other not in has]
        if not missing:
            return
        if tracked.next_forgetting_at() is None:
            self._out.set_timer(self._config.failed_pair_memory, ForgetDue(topic))
        if tracked.reports_too_much(peer):
            self._out.record(_rejected(topic, peer, Reason.TOO_MANY, "failed links"))
        self._instruct_nodes(tracked, tracked.note_failed_links(peer, missing, now), now)

    @on_message(StatusAll)
    def handle_statuses(self, peer: PeerId, message: StatusAll, now: float) -> None:
        """Believe the statuses of a node (naive protocol), even if it reports before it has finished."""
        for status in message.topics:
            self._believe_status(peer, status, now)

    @on_message(AskMembers)
    def name_members(self, peer: PeerId, message: AskMembers, now: float) -> None:
        """Name a node some members of its topic that it can dial: it compares what they have."""
        tracked = self._topics.get(message.topic)
        if tracked is None or peer not in tracked.places:
            self._out.record(_rejected(message.topic, peer, Reason.NOT_JOINED, "members"))
            return
        drawn = tracked.sample_members(peer, self._is_dialable)
        self._out.send(peer, Members(message.topic, tuple(self._contact_of(other) for other in drawn)))

    # Links.

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """Keep the places of a node whose link has closed, for a while."""
        peer = event.peer
        node = self._nodes.get(peer)
        if node is None:
            return
        node.linked = False
        for topic in node.topics:
            tracked = self._topics[topic]
            if peer not in tracked.awaited:
                self._keep_place(tracked, peer, self._config.grace, now)
        self._forget_if_gone(peer)

    @on_input(Probed)
    def handle_probe(self, event: Probed, now: float) -> None:
        """Tell a node whether it could be dialled, and change the graphs of its topics accordingly."""
        peer, reason = event.peer, event.reason
        node = self._nodes.get(peer)
        if node is None or not node.handle_probe(reason, self._out):
            return
        if node.linked:
            self._out.send(peer, Reachability(reason))
        for topic in node.topics:
            tracked = self._topics[topic]
            self._instruct_nodes(tracked, tracked.graph.set_dialable(peer, node.is_dialable), now)

    # Timers.

    @on_timer(SettleDue)
    def build_graph(self, timer: SettleDue, now: float) -> None:
        """Give the nodes of a topic neighbours, as the existing links are known by now."""
        tracked = self._topics.get(timer.topic)
        if tracked is not None:
            self._instruct_nodes(tracked, tracked.end_settling(), now)

    @on_timer(AwaitDue)
    def end_waiting(self, timer: AwaitDue, now: float) -> None:
        """Remove nodes that did not come back in time."""
        tracked = self._topics.get(timer.topic)
        if tracked is None:
            return
        over = [peer for peer, until in tracked.awaited.items() if until <= now]
        for peer in over:
            self._out.record(_control(tracked.topic, peer, "lost"))
        self._remove_nodes(tracked, over, now)
        if tracked.awaited:
            self._out.set_timer(min(tracked.awaited.values()) - now, AwaitDue(tracked.topic))

    @on_timer(ForgetDue)
    def forget_failures(self, timer: ForgetDue, now: float) -> None:
        """Let pairs whose link failed long ago be paired again."""
        tracked = self._topics.get(timer.topic)
        if tracked is None:
            return
        self._instruct_nodes(tracked, tracked.forget_failures(now), now)
        following = tracked.next_forgetting_at()
        if following is not None:
            self._out.set_timer(max(_FORGET_PERIOD, following - now), ForgetDue(tracked.topic))

    @on_timer(StorageDue)
    def tell_storage(self, timer: StorageDue, now: float) -> None:
        """Instruct the nodes of a topic that know of storage nodes that have left, or of too few."""
        tracked = self._topics.get(timer.topic)
        if tracked is not None:
            self._instruct_nodes(tracked, tracked.find_misinformed(), now)

    @on_timer(NearDue)
    def exchange_links(self, timer: NearDue, now: float) -> None:
        """Exchange links of a topic for nearer ones."""
        tracked = self._topics.get(timer.topic)
        if tracked is None:
            return
        changed: list[PeerId] = []
        if not tracked.is_settling:
            for _ in range(_RELAXATIONS):
                self._coordinates.relax_nodes(tracked.graph)
            changed = tracked.near_links.exchange_links(self._coordinates.estimate_rtt)
        self._instruct_nodes(tracked, changed, now)
        self._out.set_timer(self._config.near_period, NearDue(tracked.topic))

    # Topics.

    def _keep_place(self, tracked: TrackedTopic, peer: PeerId, seconds: float, now: float) -> None:
        first = min(tracked.awaited.values(), default=None)
        tracked.keep_place(peer, now + seconds)
        if first is None or first > now + seconds:
            self._out.set_timer(seconds, AwaitDue(tracked.topic))

    def _remove_nodes(self, tracked: TrackedTopic, peers: Iterable[PeerId], now: float) -> None:
        """Remove nodes that have left for good; their neighbours get others."""
        changed: dict[PeerId, None] = {}
        is_storage_gone = False
        leaving = dict.fromkeys(each for peer in peers for each in (peer, *tracked.named_by(peer)))
        for peer in leaving:
            is_storage_gone = is_storage_gone or peer in tracked.storage
            changed.update(dict.fromkeys(tracked.remove_node(peer)))
            node = self._nodes.get(peer)
            if peer == tracked.founder and not self._give_away(tracked):
                self._disown(tracked)
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
        self._instruct_nodes(tracked, [peer for peer in changed if peer in tracked.places], now)

    def _forget_if_gone(self, peer: PeerId) -> None:
        node = self._nodes[peer]
        if not node.linked and not node.topics:
            del self._nodes[peer]
            self._coordinates.forget_node(peer)

    def _believe_status(self, peer: PeerId, status: TopicStatus, now: float) -> None:
        topic = status.topic
        tracked = self._topics.get(topic)
        if tracked is None or peer not in tracked.places:
            self._out.record(_rejected(topic, peer, Reason.NOT_JOINED, "status"))
            return
        if self._config.control is not Control.NAIVE:
            self._out.record(_rejected(topic, peer, Reason.UNSUPPORTED, "status"))
            return
        self._learn_rtts(tracked, peer, status)
        self._out.record(_control(topic, peer, "status"))
        if not tracked.is_settling:
            changed = tracked.graph.believe_report(peer, (neighbor.peer for neighbor in status.neighbors))
            self._instruct_nodes(tracked, changed, now)

    def _learn_rtts(self, tracked: TrackedTopic, peer: PeerId, status: TopicStatus) -> None:
        for other, rtt in tracked.note_rtts(peer, status.neighbors):
            self._coordinates.observe_rtt(peer, other, rtt)

    def _instruct_nodes(self, tracked: TrackedTopic, peers: Iterable[PeerId], now: float) -> None:
        """Send the present nodes their neighbours; send nothing while a take-over settles."""
        if tracked.is_settling:
            return
        for peer in dict.fromkeys(peers):
            if peer in tracked.awaited:
                continue
            node, place = self._nodes[peer], tracked.places[peer]
            node.counter += 1
            place.counter = node.counter
            place.told_at = now
            place.told_storage = tracked.storage_for(peer)
            neighbors = tuple(self._contact_of(other) for other in tracked.graph.neighbors(peer))
            storage = tuple(self._contact_of(other) for other in place.told_storage)
            self._out.send(peer, Instruction(tracked.topic, place.counter, neighbors, storage))
            self._out.record(_control(tracked.topic, peer, f"instruction {place.counter}"))

    def _make_room(self, topic: TopicId, peer: PeerId, now: float) -> bool:
        """Return whether a node may have a place in a topic, if need be instead of who takes up more."""
        tracked = self._topics.get(topic)
        if tracked is not None and peer in tracked.places:
            return True
        while self._places.is_full():
            greedier = self._places.find_greedier(peer)
            if greedier is None:
                return False
            self._put_out(self._topics[next(reversed(self._nodes[greedier].topics))], greedier, now)
        while (tracked := self._topics.get(topic)) is not None and tracked.is_full:
            greedier = tracked.find_greedier(peer, self._origins)
            if greedier is None:
                return False
            self._put_out(tracked, greedier, now)
        while tracked is None and self._founded.is_full():
            greedier = self._founded.find_greedier(peer)
            if greedier is None:
                return False
            given = self._topics[next(reversed(self._nodes[greedier].founded))]
            # Others who have fewer are in it: from now on it counts as theirs. Else its founder leaves it.
            if not self._give_away(given, self._founded.is_fairer):
                self._put_out(given, greedier, now)
        return True

    def _give_away(
        self, tracked: TrackedTopic, may_give: Callable[[PeerId, PeerId], bool] = lambda giver, taker: True
    ) -> bool:
        """Let a topic count as that of another node that is in it; return whether there is one."""
        giver = tracked.founder
        others = (peer for peer, place in tracked.places.items() if place.payer == peer != giver)
        heir = next((peer for peer in others if may_give(giver, peer)), None)
        if heir is None:
            return False
        self._disown(tracked)
        tracked.founder = heir
        self._founded.add(heir)
        self._nodes[heir].founded[tracked.topic] = None
        return True

    def _disown(self, tracked: TrackedTopic) -> None:
        self._founded.remove(tracked.founder)
        del self._nodes[tracked.founder].founded[tracked.topic]

    def _put_out(self, tracked: TrackedTopic, peer: PeerId, now: float) -> None:
        """Take a node's place in a topic away: others need it more."""
        topic = tracked.topic
        if self._nodes[peer].linked:
            self._out.send(peer, Refusal(topic, Reason.TOO_MANY))
        self._out.record(_rejected(topic, peer, Reason.TOO_MANY, "made room for another"))
        self._remove_nodes(tracked, [peer], now)

    def _is_dialable(self, peer: PeerId) -> bool:
        node = self._nodes.get(peer)
        return node is not None and node.is_dialable

    def _contact_of(self, peer: PeerId) -> Contact:
        node = self._nodes.get(peer)
        return Contact(peer) if node is None else node.contact


def _control(topic: TopicId, peer: PeerId, note: str) -> Record:
    return Record(Kind.CONTROL, topic, peer=peer, note=note)


def _rejected(topic: TopicId, peer: PeerId, reason: Reason, note: str) -> Record:
    return Record(Kind.REJECTED, topic, peer=peer, reason=reason, note=note)
