"""The topics of a node without trackers: finding their members, keeping their rings, choosing neighbours."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.overlay.gossip.commands import RingStatus, TrackerlessStatus
from linnet.overlay.gossip.dissemination import choose_targets, find_gaps
from linnet.overlay.gossip.messages import (
    Beside,
    Intersect,
    Intersected,
    IntersectEnd,
    RingAsk,
    RingTell,
    Seek,
    Sought,
)
from linnet.overlay.gossip.neighbors import JoinedTopic, NeighborAgreements, Neighbors
from linnet.overlay.gossip.peer_gossip import PeerGossip
from linnet.overlay.gossip.private_set_intersection import Group, Intersections, Step
from linnet.overlay.gossip.random_walk_search import TopicSearches
from linnet.overlay.gossip.ring import SavedRings
from linnet.overlay.gossip.ring_gossip import RingNews, Rings
from linnet.overlay.gossip.topic_tags import PairNames, TopicKeys, proof, topic_keys
from linnet.overlay.notices import Adjacency
from linnet.trace.records import Kind, Record

_CALM_ROUNDS = 6
"""Rounds in which rings that do not change are gossiped about once."""

_REMEMBER_ROUNDS = 10
"""Rounds after which the members beside us are saved again."""


class TopicMemberships:
    """The topics of a node: joins, leaves and serves them."""

    def __init__(self, gossip: PeerGossip, group: Group, entropy: Entropy, adjacency: Adjacency) -> None:
        self._gossip = gossip
        self._out = gossip.out
        self._config = gossip.config
        self._joined: dict[TopicId, JoinedTopic] = {}
        self._names = PairNames(gossip.ours)
        self._beside = NeighborAgreements(gossip.ours, gossip.links, gossip.out, adjacency, self._names)
        self._neighbors = Neighbors(gossip, self._beside)
        self._intersecting = Intersections(gossip.ours, gossip.config, group, entropy)
        self._rings: Rings | None = None
        self._memory = SavedRings(gossip.cells, gossip.check)
        self.searches = TopicSearches(gossip, entropy)
        self._rounds = 0
        self._allowed: dict[PeerId, tuple[TopicId, ...]] = {}
        """Topics of ours that a device on a local network may learn of."""

    # What is wanted.

    def join_topic(
        self,
        topic: TopicId,
        keeps: bool,
        now: float,
        contacts: Iterable[Contact] = (),
        secret: bytes | None = None,
    ) -> None:
        """Take part in a topic, unseen by nodes that do not know it; or change whether we keep it.

        `contacts` may be members: those named in an invitation, or met before.
        """
        known = self._joined.get(topic)
        is_new = known is None
        if known is None:
            named = {each.peer: each.hints for each in contacts if each.peer != self._gossip.ours}
            known = self._joined[topic] = JoinedTopic(topic_keys(topic, secret), keeps, named)
            self.searches.add_topic(known.keys)
            self._gossip.own.set_topics({each: joined.keys for each, joined in self._joined.items()}, now)
        known.keeps = keeps
        ring = self._ring_gossip(now).open_ring(known.keys, now, keeps)
        if is_new:
            before = self._memory.load_members(known.keys, ring.epoch, now)
            for member in before:
                self._gossip.known.learn_descriptor(member.node, now)
            ring.merge_members(before)
        self._beside.open_topic(known.keys, keeps, self._epoch(now))
        tried = known.first_contacts()
        self._gossip.ask_contacts([Contact(peer, hints) for peer, hints in tried.items()], now)
        self._choose_neighbors(topic, now)

    def leave_topic(self, topic: TopicId, now: float) -> None:
        """Take part in a topic no longer."""
        if self._joined.pop(topic, None) is None:
            return
        self._beside.close_topic(topic, self._epoch(now))
        self._ring_gossip(now).close_ring(topic)
        self._memory.forget_topic(topic)
        self.searches.remove_topic(topic)
        self._gossip.own.set_topics({each: joined.keys for each, joined in self._joined.items()}, now)

    def save_rings(self) -> None:
        """Write down who stands beside us, to turn to after a restart; on local networks all are met anew."""
        if self._rings is None:
            return
        for topic in self._joined:
            ring = self._rings[topic]
            beside = [
                peer for peer in ring.wanted if ring.is_met(peer) and not self._gossip.known.is_near(peer)
            ]
            known = [ring.get(peer) for peer in beside]
            self._memory.save_members(topic, [member for member in known if member is not None])

    # What is asked.

    def neighbors(self, topic: TopicId) -> tuple[PeerId, ...]:
        """Return the neighbours of a topic."""
        return self._beside.neighbors(topic)

    def members(self) -> tuple[PeerId, ...]:
        """Return peers that are known to share topics with us."""
        rings = self._rings
        if rings is None:
            return ()
        found: dict[PeerId, None] = {}
        for topic in self._joined:
            found.update(dict.fromkeys(rings[topic].neighbors))
        return tuple(found)

    def choose_targets(
        self, topic: TopicId, sources: Collection[PeerId], up: Sequence[PeerId]
    ) -> Sequence[PeerId]:
        """Choose the peers to which an event is passed on."""
        if self._rings is None or topic not in self._joined:
            return [peer for peer in up if peer not in sources]
        return choose_targets(self._rings[topic], sources, up, self._config.fanout, self._gossip.rng)

    def status(self, rounds: int, now: float) -> TrackerlessStatus:
        """Describe the state of the overlay."""
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
            len(gossip.known),
            len(self._beside.count_held()),
            tuple(each),
            tally.done,
            tally.empty,
            None if gossip.alone_since is None else now - gossip.alone_since,
        )

    # Rounds.

    def begin_round(self, now: float) -> None:
        """Gossip with a member about its neighbours, begin an intersection, search for missing members."""
        rings = self._ring_gossip(now)
        own = self._gossip.own_profile(now)
        rings.set_descriptor(own.descriptor, own.plain)
        self.searches.expire_walks(now)
        self._record(self._intersecting.expire_runs(now))
        self._rounds += 1
        if self._rounds == self._config.hurried or self._rounds % _REMEMBER_ROUNDS == 0:
            self.save_rings()
        self._neighbors.turn = self._rounds // _CALM_ROUNDS
        is_turn = self._rounds % _CALM_ROUNDS == 0
        turn = rings.begin_round(now, is_turn or not self._is_calm(rings))
        if turn is not None:
            self._gossip.requests.ask_peer(turn[0], self._gossip.hints_of(turn[0]), turn[1])
        self._begin_intersection(now)
        for peer in self._allowed:
            self._intersect_locally(peer, now)
        for topic, joined in self._joined.items():
            ring = rings[topic]
            if ring.missing:
                self.searches.begin_search(joined.keys, now)
            if ring.wanted != joined.wanted or (is_turn and joined.is_unsettled):
                self._choose_neighbors(topic, now)
            elif is_turn:
                self._neighbors.tell_storage(joined, ring)
            for peer in find_gaps(ring, self._gossip.links):
                if not self._gossip.requests.is_asked(peer, RingAsk):
                    ask = rings.make_ask(peer, now)
                    self._gossip.requests.ask_peer(peer, self._gossip.hints_of(peer), ask)

    def add_local(self, peer: PeerId, allowed: Collection[TopicId], now: float) -> None:
        """A device is on a local network with us, on which these topics may be known."""
        self._allowed[peer] = tuple(allowed)
        kept = [topic for topic in self._joined if self._is_kept_from(peer, topic)]
        self._beside.part_from(peer, kept, self._epoch(now))
        for topic in kept:
            self._joined[topic].contacts.pop(peer, None)
            if peer in self._ring_gossip(now)[topic]:
                # A question that waits for a link speaks of it.
                self._gossip.requests.handle_answer(peer, RingAsk)
            if self._ring_gossip(now).keep_from(peer, topic):
                self._choose_neighbors(topic, now)
        if self._shared_with(peer):
            self._gossip.pull_from(peer, now)
            self._intersect_locally(peer, now)

    def remove_local(self, peer: PeerId, is_denied: bool, now: float) -> None:
        """A device is on no local network with us any more; `is_denied`: nothing is allowed where it was met.

        Who is known by that alone is forgotten with all that it was asked, and told so if it is a neighbour.
        """
        self._allowed.pop(peer, None)
        if self._gossip.remove_local(peer, is_denied):
            self._part_from(peer, now)

    def _part_from(self, peer: PeerId, now: float) -> None:
        self._record(self._intersecting.end_runs(peer))
        self._beside.part_from(peer, self._joined, self._epoch(now))
        for request in self._gossip.part_from(peer):
            if isinstance(request.message, Seek):
                self.searches.handle_failure(peer, request.message, now)
        self.searches.part_from(peer)
        for joined in self._joined.values():
            joined.contacts.pop(peer, None)
        rings = self._ring_gossip(now)
        for topic in rings.forget_member(peer):
            self._choose_neighbors(topic, now)
            if not len(rings[topic]):
                self.searches.note_lost(topic)

    def _is_kept_from(self, peer: PeerId, topic: TopicId) -> bool:
        """Whether a topic is not spoken of with a device that only local networks without it made known."""
        allowed = self._allowed.get(peer)
        return allowed is not None and topic not in allowed and self._gossip.known.is_near(peer)

    def _shared_with(self, peer: PeerId) -> list[TopicKeys]:
        """Return the topics for an intersection with a peer: on a local network those allowed there."""
        allowed = self._allowed.get(peer)
        return [joined.keys for topic, joined in self._joined.items() if allowed is None or topic in allowed]

    def _intersect_locally(self, peer: PeerId, now: float) -> None:
        """Begin an intersection with a local device about topics that are allowed there; the lower key
        begins."""
        topics = self._shared_with(peer)
        if topics and peer >= self._gossip.ours and self._intersecting.may_begin(peer, topics, now):
            self._begin_run(peer, topics, now)

    def _is_calm(self, rings: Rings) -> bool:
        """Return whether no ring has changed for a while: meanwhile the links show whether neighbours are
        up."""
        return all(rings[topic].is_calm for topic in self._joined)

    def _begin_intersection(self, now: float) -> None:
        """Begin an intersection with the peer that seems to share most, of those that could tell something
        new.

        Topics that a peer is known to share by its place on our rings are not new, once no ring lacks
        members.
        """
        gossip, rings = self._gossip, self._ring_gossip(now)
        lacking = any(rings[topic].missing for topic in self._joined)
        if not self._joined or (not lacking and self._rounds % _CALM_ROUNDS):
            return  # Where no ring lacks members there is no hurry.
        topics = [joined.keys for joined in self._joined.values()]
        for peer in gossip.clustering.view:  # The likest first.
            known = gossip.known.descriptor_of(peer)
            if known is None or not self._intersecting.may_begin(peer, topics, now):
                continue
            told = 0 if lacking else len(rings.shared_topics(peer))
            if gossip.clustering.similarity.common_topics(known) - told >= self._config.worth:
                self._begin_run(peer, topics, now)
                return

    def _begin_run(self, peer: PeerId, topics: list[TopicKeys], now: float) -> None:
        step = self._intersecting.begin_run(peer, topics, now)
        self._record(step.records)
        if isinstance(step.send, Intersect):
            self._gossip.requests.ask_peer(peer, self._gossip.hints_of(peer), step.send)

    # Messages.

    def handle_intersect(self, peer: PeerId, message: Intersect, now: float) -> None:
        """Answer a peer that begins a private intersection."""
        self._take_step(
            peer, self._intersecting.handle_intersect(peer, message, self._shared_with(peer), now), now
        )

    def handle_intersected(self, peer: PeerId, message: Intersected, now: float) -> None:
        """Continue an intersection that we began."""
        self._take_step(peer, self._intersecting.handle_intersected(peer, message, now), now)

    def handle_intersect_end(self, peer: PeerId, message: IntersectEnd, now: float) -> None:
        """End an intersection."""
        step = self._intersecting.handle_end(peer, message, now)
        self._gossip.requests.handle_answer(peer, Intersect)
        self._take_step(peer, step, now)

    def _take_step(self, peer: PeerId, step: Step, now: float) -> None:
        """Carry out the next step of an intersection."""
        self._record(step.records)
        if step.send is not None:
            self._out.send(peer, step.send)
        if step.fault is not None:
            self._gossip.note_offence(peer, now)
            self._out.blame(peer, step.fault)
            self.handle_silence(peer, now)
        if step.outcome is not None:
            self._gossip.budget.enter_intersection(
                peer, len(step.outcome.asked), len(step.outcome.topics), now
            )
            self._record(self._gossip.clustering.handle_intersection(peer, len(step.outcome.topics), now))
            for topic in step.outcome.topics:
                self._add_member(topic, peer, now)

    def handle_ring_ask(self, peer: PeerId, message: RingAsk, now: float) -> None:
        """Answer a member that names the members beside us."""
        answer, news = self._ring_gossip(now).handle_ask(peer, message, now)
        self._out.send(peer, answer)
        self._take_news(news, now)

    def handle_ring_tell(self, peer: PeerId, message: RingTell, now: float) -> None:
        """Take in the answer of a member."""
        news = self._ring_gossip(now).handle_tell(peer, message, now)
        self._gossip.requests.handle_answer(peer, RingAsk)
        self._take_news(news, now)

    def _take_news(self, news: RingNews, now: float) -> None:
        self._record(news.records)
        for topic in news.changed:
            self._handle_change(topic, now)

    def handle_beside(self, peer: PeerId, message: Beside, now: float) -> None:
        """A peer counts us as a neighbour, or no longer."""
        topic = self._names.find_topic(peer, message.hint)
        if message.open and topic is not None and self._is_kept_from(peer, topic):
            self._out.record(
                Record(Kind.REJECTED, topic, peer=peer, reason=Reason.NOT_ALLOWED, note="beside")
            )
            return
        self._beside.handle_beside(peer, message, self._epoch(now))
        if not message.open:
            return
        self.note_introduced(peer, now)
        for topic in self._joined if message.keeps else ():
            self._neighbors.tell_storage(self._joined[topic], self._ring_gossip(now)[topic])

    def handle_sought(self, peer: PeerId, message: Sought, now: float) -> None:
        """Take in an answer to our search, or pass on one for another node."""
        found = self.searches.handle_sought(peer, message, now)
        if found is None or found.topic not in self._joined:
            return
        node = found.member.node
        self._gossip.check(node, now)
        self._gossip.known.note_word(node, peer)
        self._gossip.known.learn_descriptor(node, now)
        if self._gossip.known.is_parted(node.peer) or self._is_kept_from(node.peer, found.topic):
            return
        self.searches.note_found(found.topic, now)
        # A holder of the ring's key vouches for it; it counts as met when it speaks itself.
        if self._ring_gossip(now)[found.topic].merge_members((found.member,)):
            self._handle_change(found.topic, now)

    # Links.

    def handle_link_up(self, peer: PeerId, now: float) -> None:
        """Note that the link to a peer is open."""
        self._beside.handle_link_up(peer, self._epoch(now))
        rings = self._rings
        for topic in [] if rings is None else rings.revive_member(peer, now):
            self._handle_change(topic, now)

    def note_introduced(self, peer: PeerId, now: float) -> None:
        """Add a peer whose descriptor is known by now to the topics in which it is a neighbour."""
        for topic in self._beside.topics_with(peer):
            if peer not in self._ring_gossip(now)[topic]:
                self._add_member(topic, peer, now)

    def handle_link_down(self, peer: PeerId, is_dead: bool, now: float) -> None:
        """Note that the link to a peer closed, or could not be opened."""
        self._beside.handle_link_down(peer)
        self._record(self._intersecting.end_runs(peer))
        if is_dead:
            self.handle_silence(peer, now)

    def handle_silence(self, peer: PeerId, now: float) -> None:
        """Drop a peer that does not answer: others take its place."""
        rings = self._ring_gossip(now)
        for topic in rings.drop_member(peer, now):
            self._choose_neighbors(topic, now)
            if not len(rings[topic]):
                self.searches.note_lost(topic)

    def end_intersection(self, peer: PeerId) -> None:
        """End an intersection that we began and that the peer did not answer."""
        self._record(self._intersecting.end_runs(peer, Reason.TIMEOUT))

    # Neighbours.

    def _add_member(self, topic: TopicId, peer: PeerId, now: float) -> None:
        """A peer has shown that it is a member; as soon as it is known who it is, it has its place."""
        if self._is_kept_from(peer, topic):
            return
        node = self._gossip.known.descriptor_of(peer)
        if node is None:
            self._gossip.pull_from(peer, now)
            return
        epoch = self._epoch(now)
        keys = self._joined[topic].keys
        self.searches.note_found(topic, now)
        if self._ring_gossip(now).add_member(topic, node, proof(keys, peer, epoch), epoch):
            self._handle_change(topic, now)

    def _handle_change(self, topic: TopicId, now: float) -> None:
        self._neighbors.handle_change(self._joined[topic], self._ring_gossip(now)[topic], now)

    def _choose_neighbors(self, topic: TopicId, now: float) -> None:
        self._neighbors.choose_neighbors(self._joined[topic], self._ring_gossip(now)[topic], now)

    def _record(self, records: Iterable[Record]) -> None:
        for record in records:
            self._out.record(record)

    def _ring_gossip(self, now: float) -> Rings:
        if self._rings is None:
            gossip = self._gossip
            own = gossip.own_profile(now).descriptor
            self._rings = Rings(
                own,
                gossip.config,
                gossip.known,
                gossip.rng,
                gossip.key,
                gossip.check,
                names=self._names,
                local=gossip.local,
                is_kept_from=self._is_kept_from,
            )
        return self._rings

    def _epoch(self, now: float) -> int:
        return self._gossip.own.epoch_at(now)
