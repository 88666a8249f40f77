"""The topics of a node without trackers: finding their members, keeping their rings, choosing neighbours."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.overlay.adjacency import Adjacency
from linnet.overlay.trackerless.beside import BesideUs
from linnet.overlay.trackerless.gossip import Gossip
from linnet.overlay.trackerless.intersecting import Intersecting, Step
from linnet.overlay.trackerless.joined_topic import JoinedTopic
from linnet.overlay.trackerless.messages import (
    Beside,
    Intersect,
    Intersected,
    IntersectEnd,
    RingAsk,
    RingTell,
    Seek,
    Sought,
)
from linnet.overlay.trackerless.names import Names
from linnet.overlay.trackerless.neighbors import Neighbors
from linnet.overlay.trackerless.oblivious import Group
from linnet.overlay.trackerless.ring_gossip import RingNews, Rings
from linnet.overlay.trackerless.ring_memory import RingMemory
from linnet.overlay.trackerless.searches import Searches
from linnet.overlay.trackerless.spreading import gaps, targets
from linnet.overlay.trackerless.status import RingStatus, TrackerlessStatus
from linnet.overlay.trackerless.tags import TopicKeys, proof, topic_keys
from linnet.trace.records import Record

_CALM_ROUNDS = 6
"""Rounds in which rings that do not change are spoken about once."""

_REMEMBER_ROUNDS = 10
"""Rounds after which those beside us are written down again."""


class Topics:
    """All topics of a node."""

    def __init__(self, gossip: Gossip, group: Group, entropy: Entropy, adjacency: Adjacency) -> None:
        self._gossip = gossip
        self._out = gossip.out
        self._config = gossip.config
        self._joined: dict[TopicId, JoinedTopic] = {}
        self._names = Names(gossip.ours)
        self._beside = BesideUs(gossip.ours, gossip.links, gossip.out, adjacency, self._names)
        self._neighbors = Neighbors(gossip, self._beside)
        self._intersecting = Intersecting(gossip.ours, gossip.config, group, entropy)
        self._rings: Rings | None = None
        self._memory = RingMemory(gossip.cells, gossip.check)
        self._searches = Searches(gossip, entropy)
        self._rounds = 0
        self._allowed: dict[PeerId, tuple[TopicId, ...]] = {}
        """Topics that a device on a local network may learn that we are in."""

    # What is wanted.

    def join(
        self, topic: TopicId, keeps: bool, now: float, contacts: Iterable[Contact], secret: bytes | None
    ) -> None:
        """Take part in a topic; once more, to keep it from now on or no longer."""
        known = self._joined.get(topic)
        is_new = known is None
        if known is None:
            named = {each.peer: each.hints for each in contacts if each.peer != self._gossip.ours}
            known = self._joined[topic] = JoinedTopic(topic_keys(topic, secret), keeps, named)
            self._searches.open(known.keys)
            self._gossip.own.topics({each: joined.keys for each, joined in self._joined.items()}, now)
        known.keeps = keeps
        ring = self._ring_gossip(now).open(known.keys, now, keeps)
        if is_new:
            before = self._memory.recall(known.keys, ring.epoch, now)
            for member in before:
                self._gossip.acquaintances.learn(member.node, now)
            ring.merge(before)
        self._beside.open(known.keys, keeps, self._epoch(now))
        tried = known.first_contacts()
        self._gossip.approach([Contact(peer, hints) for peer, hints in tried.items()], now)
        self._mend(topic, now)

    def leave(self, topic: TopicId, now: float) -> None:
        """Take part no more."""
        if self._joined.pop(topic, None) is None:
            return
        self._beside.close(topic, self._epoch(now))
        self._ring_gossip(now).close(topic)
        self._memory.forget(topic)
        self._searches.close(topic)
        self._gossip.own.topics({each: joined.keys for each, joined in self._joined.items()}, now)

    def remember(self) -> None:
        """Write down who stands beside us, to turn to after a restart."""
        if self._rings is None:
            return
        for topic in self._joined:
            ring = self._rings[topic]
            known = [ring.get(peer) for peer in ring.wanted if ring.is_met(peer)]
            self._memory.keep(topic, [member for member in known if member is not None])

    # What is asked.

    def neighbors(self, topic: TopicId) -> tuple[PeerId, ...]:
        """The neighbours of a topic."""
        return self._beside.neighbors(topic)

    def members(self) -> tuple[PeerId, ...]:
        """Peers that are known to share topics with us."""
        rings = self._rings
        if rings is None:
            return ()
        found: dict[PeerId, None] = {}
        for topic in self._joined:
            found.update(dict.fromkeys(rings[topic].neighbors))
        return tuple(found)

    def targets(self, topic: TopicId, sources: Collection[PeerId], up: Sequence[PeerId]) -> Sequence[PeerId]:
        """To whom an event is passed on."""
        if self._rings is None or topic not in self._joined:
            return [peer for peer in up if peer not in sources]
        return targets(self._rings[topic], sources, up, self._config.fanout, self._gossip.rng)

    def status(self, rounds: int, now: float) -> TrackerlessStatus:
        """How it stands."""
        rings = self._ring_gossip(now)
        each = [
            RingStatus(
                topic,
                len(rings[topic]),
                rings[topic].successors,
                rings[topic].predecessors,
                self._beside.neighbors(topic),
                joined.uncovered,
            )
            for topic, joined in self._joined.items()
        ]
        gossip, tally = self._gossip, self._intersecting.tally
        return TrackerlessStatus(
            rounds,
            gossip.sampling.view,
            gossip.clustering.view,
            gossip.clustering.fingers,
            len(gossip.acquaintances),
            len(self._beside.held()),
            tuple(each),
            tally.done,
            tally.empty,
        )

    # Rounds.

    def round(self, now: float) -> None:
        """Tell a member about its neighbours, begin an intersection, look for members that are missing."""
        rings = self._ring_gossip(now)
        rings.introduce(self._gossip.shown(now).descriptor)
        self._searches.round(now)
        self._record(self._intersecting.expire(now))
        self._rounds += 1
        if self._rounds == self._config.hurried or self._rounds % _REMEMBER_ROUNDS == 0:
            self.remember()
        self._neighbors.turn = self._rounds // _CALM_ROUNDS
        is_turn = self._rounds % _CALM_ROUNDS == 0
        turn = rings.round(now, is_turn or not self._is_calm(rings))
        if turn is not None:
            self._gossip.errands.ask(turn[0], self._gossip.hints(turn[0]), turn[1])
        self._begin_intersection(now)
        for peer in self._allowed:
            self._intersect_locally(peer, now)
        for topic, joined in self._joined.items():
            ring = rings[topic]
            if ring.missing:
                self._searches.begin(joined.keys, now)
            if ring.wanted != joined.wanted or (is_turn and joined.is_unsettled):
                self._mend(topic, now)
            elif is_turn:
                self._neighbors.tell_storage(joined, ring)
            for peer in gaps(ring, self._gossip.links):
                if not self._gossip.errands.is_asked(peer, RingAsk):
                    ask = rings.ask(peer, now)
                    self._gossip.errands.ask(peer, self._gossip.hints(peer), ask)

    def add_local(self, contact: Contact, allowed: Collection[TopicId], now: float) -> None:
        """A device is on a local network with us, on which these topics may be known."""
        peer = contact.peer
        self._gossip.local[peer] = contact
        self._allowed[peer] = tuple(allowed)
        if self._shared_with(peer):
            self._gossip.pull(peer, now)
            self._intersect_locally(peer, now)

    def remove_local(self, peer: PeerId) -> None:
        """A device is on no local network with us any more."""
        self._gossip.local.pop(peer, None)
        self._allowed.pop(peer, None)

    def _shared_with(self, peer: PeerId) -> list[TopicKeys]:
        """The topics that an intersection may be about: on a local network those allowed there."""
        allowed = self._allowed.get(peer)
        return [joined.keys for topic, joined in self._joined.items() if allowed is None or topic in allowed]

    def _intersect_locally(self, peer: PeerId, now: float) -> None:
        """With everyone on a local network, as far as topics are allowed there; the lower key begins."""
        topics = self._shared_with(peer)
        if topics and peer >= self._gossip.ours and self._intersecting.may_ask(peer, topics, now):
            self._intersect(peer, topics, now)

    def _is_calm(self, rings: Rings) -> bool:
        """Whether no ring has changed for a while: those beside us are watched by their links meanwhile."""
        return all(rings[topic].is_calm for topic in self._joined)

    def _begin_intersection(self, now: float) -> None:
        """With the one that seems to share most, of those with whom a run could tell something new.

        What a peer is known to share by its place on our rings is not new, once no ring lacks members.
        """
        gossip, rings = self._gossip, self._ring_gossip(now)
        lacking = any(rings[topic].missing for topic in self._joined)
        if not self._joined or (not lacking and self._rounds % _CALM_ROUNDS):
            return  # Where no ring lacks members there is no hurry.
        topics = [joined.keys for joined in self._joined.values()]
        for peer in gossip.clustering.view:  # The likest first.
            known = gossip.acquaintances.descriptor(peer)
            if known is None or not self._intersecting.may_ask(peer, topics, now):
                continue
            told = 0 if lacking else len(rings.shared(peer))
            if gossip.clustering.likeness.common(known) - told >= self._config.worth:
                self._intersect(peer, topics, now)
                return

    def _intersect(self, peer: PeerId, topics: list[TopicKeys], now: float) -> None:
        step = self._intersecting.begin(peer, topics, now)
        self._record(step.records)
        if isinstance(step.send, Intersect):
            self._gossip.errands.ask(peer, self._gossip.hints(peer), step.send)

    # Messages.

    def handle_intersect(self, peer: PeerId, message: Intersect, now: float) -> None:
        """A peer begins a private intersection."""
        self._step(peer, self._intersecting.asked(peer, message, self._shared_with(peer), now), now)

    def handle_intersected(self, peer: PeerId, message: Intersected, now: float) -> None:
        """A peer goes on with an intersection that we began."""
        self._step(peer, self._intersecting.answered(peer, message, now), now)

    def handle_intersect_end(self, peer: PeerId, message: IntersectEnd, now: float) -> None:
        """A peer ends an intersection."""
        step = self._intersecting.ended(peer, message, now)
        self._gossip.errands.handle_answer(peer, Intersect)
        self._step(peer, step, now)

    def _step(self, peer: PeerId, step: Step, now: float) -> None:
        """An intersection goes on."""
        self._record(step.records)
        if step.send is not None:
            self._out.send(peer, step.send)
        if step.fault is not None:
            self._gossip.note_offence(peer, now)
            self._out.blame(peer, step.fault)
            self.leave_out(peer, now)
        if step.outcome is not None:
            self._gossip.budget.intersected(peer, len(step.outcome.asked), len(step.outcome.topics), now)
            self._record(self._gossip.clustering.intersected(peer, len(step.outcome.topics), now))
            for topic in step.outcome.topics:
                self._add_member(topic, peer, now)

    def handle_ring_ask(self, peer: PeerId, message: RingAsk, now: float) -> None:
        """A member says who stands beside us."""
        answer, news = self._ring_gossip(now).asked(peer, message, now)
        self._out.send(peer, answer)
        self._take_news(news, now)

    def handle_ring_tell(self, peer: PeerId, message: RingTell, now: float) -> None:
        """A member answers."""
        news = self._ring_gossip(now).told(peer, message, now)
        self._gossip.errands.handle_answer(peer, RingAsk)
        self._take_news(news, now)

    def _take_news(self, news: RingNews, now: float) -> None:
        self._record(news.records)
        for topic in news.changed:
            self._handle_change(topic, now)

    def handle_beside(self, peer: PeerId, message: Beside, now: float) -> None:
        """A peer counts us as a neighbour, or no longer."""
        self._beside.hear(peer, message, self._epoch(now))
        if not message.open:
            return
        self.introduce(peer, now)
        for topic in self._joined if message.keeps else ():
            self._neighbors.tell_storage(self._joined[topic], self._ring_gossip(now)[topic])

    def handle_seek(self, peer: PeerId, message: Seek, now: float) -> None:
        """A search comes by."""
        self._searches.handle_seek(peer, message, now)

    def handle_sought(self, peer: PeerId, message: Sought, now: float) -> None:
        """A search found someone: for us, or for the one who sent it by us."""
        found = self._searches.handle_sought(peer, message, now)
        if found is None or found.topic not in self._joined:
            return
        node = found.member.node
        self._gossip.check(node, now)
        self._gossip.acquaintances.learn(node, now)
        self._searches.note_found(found.topic, now)
        # Some holder of the ring's key vouches for it; it counts as met when it speaks itself.
        if self._ring_gossip(now)[found.topic].merge((found.member,)):
            self._handle_change(found.topic, now)

    def handle_lost_search(self, peer: PeerId, message: Seek | Sought, now: float) -> None:
        """A search or its answer did not get through."""
        self._searches.handle_failure(peer, message, now)

    # Links.

    def handle_link_up(self, peer: PeerId, now: float) -> None:
        """A link is open."""
        self._beside.handle_link_up(peer, self._epoch(now))

    def introduce(self, peer: PeerId, now: float) -> None:
        """A peer has said who it is: it may be a member that was only an address until now."""
        for topic in self._beside.topics_with(peer):
            if peer not in self._ring_gossip(now)[topic]:
                self._add_member(topic, peer, now)

    def handle_link_down(self, peer: PeerId, is_dead: bool, now: float) -> None:
        """A link is gone, or none came of dialling."""
        self._beside.handle_link_down(peer)
        self._record(self._intersecting.failed(peer))
        if is_dead:
            self.handle_silence(peer, now)

    def handle_silence(self, peer: PeerId, now: float) -> None:
        """A peer does not answer: others stand in for it."""
        rings = self._ring_gossip(now)
        for topic in rings.lost(peer, now):
            self._mend(topic, now)
            if not len(rings[topic]):
                self._searches.note_lost(topic)

    def end_intersection(self, peer: PeerId) -> None:
        """A peer did not answer what we began."""
        self._record(self._intersecting.failed(peer, Reason.TIMEOUT))

    def leave_out(self, peer: PeerId, now: float) -> None:
        """A peer is left out: it broke the protocol."""
        self.handle_silence(peer, now)

    # Neighbours.

    def _add_member(self, topic: TopicId, peer: PeerId, now: float) -> None:
        """A peer has shown that it is a member; as soon as it is known who it is, it has its place."""
        node = self._gossip.acquaintances.descriptor(peer)
        if node is None:
            self._gossip.pull(peer, now)
            return
        epoch = self._epoch(now)
        keys = self._joined[topic].keys
        self._searches.note_found(topic, now)
        if self._ring_gossip(now).met(topic, node, proof(keys, peer, epoch), epoch):
            self._handle_change(topic, now)

    def _handle_change(self, topic: TopicId, now: float) -> None:
        self._neighbors.handle_change(self._joined[topic], self._ring_gossip(now)[topic], now)

    def _mend(self, topic: TopicId, now: float) -> None:
        self._neighbors.mend(self._joined[topic], self._ring_gossip(now)[topic], now)

    def _record(self, records: Iterable[Record]) -> None:
        for record in records:
            self._out.record(record)

    def _ring_gossip(self, now: float) -> Rings:
        if self._rings is None:
            gossip = self._gossip
            own = gossip.shown(now).descriptor
            self._rings = Rings(
                own,
                gossip.config,
                gossip.acquaintances,
                gossip.rng,
                gossip.key,
                gossip.check,
                names=self._names,
            )
        return self._rings

    def _epoch(self, now: float) -> int:
        return self._gossip.own.epoch(now)
