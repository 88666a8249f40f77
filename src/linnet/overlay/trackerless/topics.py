"""The topics of a node without trackers: finding their members, keeping their rings, choosing neighbours."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from linnet.core.effects import Blame, Send
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.overlay.overlays import TrackerlessEffect
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

_CALM_ROUNDS = 6
"""Rounds in which rings that do not change are spoken about once."""

_REMEMBER_ROUNDS = 10
"""Rounds after which those beside us are written down again."""


class Topics:
    """All topics of a node."""

    def __init__(self, gossip: Gossip, group: Group, entropy: Entropy) -> None:
        self._gossip = gossip
        self._config = gossip.config
        self._joined: dict[TopicId, JoinedTopic] = {}
        self._names = Names(gossip.ours)
        self._beside = BesideUs(gossip.ours, gossip.links, self._names)
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
    ) -> list[TrackerlessEffect]:
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
        effects: list[TrackerlessEffect] = [*self._beside.open(known.keys, keeps, self._epoch(now))]
        tried = known.first_contacts()
        effects += self._gossip.approach([Contact(peer, hints) for peer, hints in tried.items()], now)
        return effects + self._mend(topic, now)

    def leave(self, topic: TopicId, now: float) -> list[TrackerlessEffect]:
        """Take part no more."""
        if self._joined.pop(topic, None) is None:
            return []
        effects: list[TrackerlessEffect] = [*self._beside.close(topic, self._epoch(now))]
        self._ring_gossip(now).close(topic)
        self._memory.forget(topic)
        self._searches.close(topic)
        self._gossip.own.topics({each: joined.keys for each, joined in self._joined.items()}, now)
        return effects

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

    def round(self, now: float) -> list[TrackerlessEffect]:
        """Tell a member about its neighbours, begin an intersection, look for members that are missing."""
        rings = self._ring_gossip(now)
        rings.introduce(self._gossip.shown(now).descriptor)
        self._searches.round(now)
        effects: list[TrackerlessEffect] = [*self._intersecting.expire(now)]
        self._rounds += 1
        if self._rounds == self._config.hurried or self._rounds % _REMEMBER_ROUNDS == 0:
            self.remember()
        self._neighbors.turn = self._rounds // _CALM_ROUNDS
        is_turn = self._rounds % _CALM_ROUNDS == 0
        turn = rings.round(now, is_turn or not self._is_calm(rings))
        if turn is not None:
            effects += self._gossip.errands.ask(turn[0], self._gossip.hints(turn[0]), turn[1])
        effects += self._begin_intersection(now)
        for peer in self._allowed:
            effects += self._intersect_locally(peer, now)
        for topic, joined in self._joined.items():
            ring = rings[topic]
            if ring.missing:
                effects += self._searches.begin(joined.keys, now)
            if ring.wanted != joined.wanted or (is_turn and joined.is_unsettled):
                effects += self._mend(topic, now)
            elif is_turn:
                effects += self._neighbors.storage(joined, ring)
            for peer in gaps(ring, self._gossip.links):
                if not self._gossip.errands.asked(peer, RingAsk):
                    ask = rings.ask(peer, now)
                    effects += self._gossip.errands.ask(peer, self._gossip.hints(peer), ask)
        return effects

    def local(self, contact: Contact, allowed: Collection[TopicId], now: float) -> list[TrackerlessEffect]:
        """A device is on a local network with us, on which these topics may be known."""
        peer = contact.peer
        self._gossip.local[peer] = contact
        self._allowed[peer] = tuple(allowed)
        if not self._shared_with(peer):
            return []
        return [*self._gossip.pull(peer, now), *self._intersect_locally(peer, now)]

    def not_local(self, peer: PeerId) -> None:
        """A device is on no local network with us any more."""
        self._gossip.local.pop(peer, None)
        self._allowed.pop(peer, None)

    def _shared_with(self, peer: PeerId) -> list[TopicKeys]:
        """The topics that an intersection may be about: on a local network those allowed there."""
        allowed = self._allowed.get(peer)
        return [joined.keys for topic, joined in self._joined.items() if allowed is None or topic in allowed]

    def _intersect_locally(self, peer: PeerId, now: float) -> list[TrackerlessEffect]:
        """With everyone on a local network, as far as topics are allowed there; the lower key begins."""
        topics = self._shared_with(peer)
        if not topics or peer < self._gossip.ours or not self._intersecting.may_ask(peer, topics, now):
            return []
        return self._intersect(peer, topics, now)

    def _is_calm(self, rings: Rings) -> bool:
        """Whether no ring has changed for a while: those beside us are watched by their links meanwhile."""
        return all(rings[topic].is_calm for topic in self._joined)

    def _begin_intersection(self, now: float) -> list[TrackerlessEffect]:
        """With the one that seems to share most, of those with whom a run could tell something new.

        What a peer is known to share by its place on our rings is not new, once no ring lacks members.
        """
        gossip, rings = self._gossip, self._ring_gossip(now)
        lacking = any(rings[topic].missing for topic in self._joined)
        if not self._joined or (not lacking and self._rounds % _CALM_ROUNDS):
            return []  # Where no ring lacks members there is no hurry.
        topics = [joined.keys for joined in self._joined.values()]
        for peer in gossip.clustering.view:  # The likest first.
            known = gossip.acquaintances.descriptor(peer)
            if known is None or not self._intersecting.may_ask(peer, topics, now):
                continue
            told = 0 if lacking else len(rings.shared(peer))
            if gossip.clustering.likeness.common(known) - told >= self._config.worth:
                return self._intersect(peer, topics, now)
        return []

    def _intersect(self, peer: PeerId, topics: list[TopicKeys], now: float) -> list[TrackerlessEffect]:
        step = self._intersecting.begin(peer, topics, now)
        if not isinstance(step.send, Intersect):
            return [*step.records]
        return [*step.records, *self._gossip.errands.ask(peer, self._gossip.hints(peer), step.send)]

    # Messages.

    def on_intersection(
        self, peer: PeerId, message: Intersect | Intersected | IntersectEnd, now: float
    ) -> list[TrackerlessEffect]:
        """A private intersection goes on."""
        effects: list[TrackerlessEffect] = []
        match message:
            case Intersect():
                step = self._intersecting.asked(peer, message, self._shared_with(peer), now)
            case Intersected():
                step = self._intersecting.answered(peer, message, now)
            case IntersectEnd():
                step = self._intersecting.ended(peer, message, now)
                effects += self._gossip.errands.answered(peer, Intersect)
        return effects + self._stepped(peer, step, now)

    def _stepped(self, peer: PeerId, step: Step, now: float) -> list[TrackerlessEffect]:
        effects: list[TrackerlessEffect] = [*step.records]
        if step.send is not None:
            effects.append(Send(peer, step.send))
        if step.fault is not None:
            self._gossip.offence(peer, now)
            effects += [Blame(peer, step.fault), *self.shunned(peer, now)]
        if step.outcome is not None:
            self._gossip.budget.intersected(peer, len(step.outcome.asked), len(step.outcome.topics), now)
            effects += self._gossip.clustering.intersected(peer, len(step.outcome.topics), now)
            for topic in step.outcome.topics:
                effects += self._is_member(topic, peer, now)
        return effects

    def on_ring_ask(self, peer: PeerId, message: RingAsk, now: float) -> list[TrackerlessEffect]:
        """A member says who stands beside us."""
        answer, news = self._ring_gossip(now).asked(peer, message, now)
        return [Send(peer, answer), *self._news(news, now)]

    def on_ring_tell(self, peer: PeerId, message: RingTell, now: float) -> list[TrackerlessEffect]:
        """A member answers."""
        news = self._ring_gossip(now).told(peer, message, now)
        return [*self._gossip.errands.answered(peer, RingAsk), *self._news(news, now)]

    def _news(self, news: RingNews, now: float) -> list[TrackerlessEffect]:
        effects: list[TrackerlessEffect] = [*news.records]
        for topic in news.changed:
            effects += self._changed(topic, now)
        return effects

    def on_beside(self, peer: PeerId, message: Beside, now: float) -> list[TrackerlessEffect]:
        """A peer counts us as a neighbour, or no longer."""
        effects: list[TrackerlessEffect] = [*self._beside.heard(peer, message, self._epoch(now))]
        if not message.open:
            return effects
        effects += self.introduced(peer, now)
        for topic in self._joined if message.keeps else ():
            effects += self._neighbors.storage(self._joined[topic], self._ring_gossip(now)[topic])
        return effects

    def on_seek(self, peer: PeerId, message: Seek, now: float) -> list[TrackerlessEffect]:
        """A search comes by."""
        return [*self._searches.on_seek(peer, message, now)]

    def on_sought(self, peer: PeerId, message: Sought, now: float) -> list[TrackerlessEffect]:
        """A search found someone: for us, or for the one who sent it by us."""
        effects, found = self._searches.on_sought(peer, message, now)
        if found is None or found.topic not in self._joined:
            return [*effects]
        node = found.member.node
        self._gossip.check(node, now)
        self._gossip.acquaintances.learn(node, now)
        self._searches.found(found.topic, now)
        # Some holder of the ring's key vouches for it; it counts as met when it speaks itself.
        if self._ring_gossip(now)[found.topic].merge((found.member,)):
            return [*effects, *self._changed(found.topic, now)]
        return [*effects]

    def no_way(self, peer: PeerId, message: Seek | Sought, now: float) -> list[TrackerlessEffect]:
        """A search or its answer did not get through."""
        return [*self._searches.no_way(peer, message, now)]

    # Links.

    def linked(self, peer: PeerId, now: float) -> list[TrackerlessEffect]:
        """A link is open."""
        return [*self._beside.linked(peer, self._epoch(now))]

    def introduced(self, peer: PeerId, now: float) -> list[TrackerlessEffect]:
        """A peer has said who it is: it may be a member that was only an address until now."""
        effects: list[TrackerlessEffect] = []
        for topic in self._beside.topics_with(peer):
            if peer not in self._ring_gossip(now)[topic]:
                effects += self._is_member(topic, peer, now)
        return effects

    def lost(self, peer: PeerId, is_dead: bool, now: float) -> list[TrackerlessEffect]:
        """A link is gone, or none came of dialling."""
        effects: list[TrackerlessEffect] = [*self._beside.lost(peer), *self._intersecting.failed(peer)]
        return effects + self.silent(peer, now) if is_dead else effects

    def silent(self, peer: PeerId, now: float) -> list[TrackerlessEffect]:
        """A peer does not answer: others stand in for it."""
        effects: list[TrackerlessEffect] = []
        rings = self._ring_gossip(now)
        for topic in rings.lost(peer, now):
            effects += self._mend(topic, now)
            if not len(rings[topic]):
                self._searches.lost(topic)
        return effects

    def no_intersection(self, peer: PeerId) -> list[TrackerlessEffect]:
        """A peer did not answer what we began."""
        return [*self._intersecting.failed(peer, Reason.TIMEOUT)]

    def shunned(self, peer: PeerId, now: float) -> list[TrackerlessEffect]:
        """A peer is left out: it broke the protocol."""
        return self.silent(peer, now)

    # Neighbours.

    def _is_member(self, topic: TopicId, peer: PeerId, now: float) -> list[TrackerlessEffect]:
        """A peer has shown that it is a member; as soon as it is known who it is, it has its place."""
        node = self._gossip.acquaintances.descriptor(peer)
        if node is None:
            return [*self._gossip.pull(peer, now)]
        epoch = self._epoch(now)
        keys = self._joined[topic].keys
        self._searches.found(topic, now)
        changed = self._ring_gossip(now).met(topic, node, proof(keys, peer, epoch), epoch)
        return self._changed(topic, now) if changed else []

    def _changed(self, topic: TopicId, now: float) -> list[TrackerlessEffect]:
        return self._neighbors.changed(self._joined[topic], self._ring_gossip(now)[topic], now)

    def _mend(self, topic: TopicId, now: float) -> list[TrackerlessEffect]:
        return self._neighbors.mend(self._joined[topic], self._ring_gossip(now)[topic], now)

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
