"""Chooses neighbours among the members of a topic as its ring changes, and knows which members keep the
topic."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.limits import STORAGE_NODES
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.overlay.config import Overlay
from linnet.overlay.gossip.messages import Beside
from linnet.overlay.gossip.peer_gossip import PeerGossip
from linnet.overlay.gossip.ring import Ring
from linnet.overlay.gossip.topic_tags import PairNames, TopicKeys, is_proof, proof
from linnet.overlay.notices import Adjacency, StorageKnown
from linnet.trace.records import Kind, Record


class Neighbors:
    """Chooses the neighbours of all topics of a node."""

    def __init__(self, gossip: PeerGossip, beside: NeighborAgreements) -> None:
        self._gossip = gossip
        self._beside = beside
        self.turn = 0
        """Which of the contacts that may be members is tried beside the known members."""

    def handle_change(self, joined: JoinedTopic, ring: Ring, now: float) -> None:
        """React to new members beside us: choose neighbours in the next round, or at once if there are none
        yet.

        Members become known one after the other, and most stand beside us for a moment only: a link to each,
        and a message about it, would be wasted.
        """
        if self._beside.neighbors(joined.keys.topic):
            self.tell_storage(joined, ring)
        else:
            self.choose_neighbors(joined, ring, now)

    def choose_neighbors(self, joined: JoinedTopic, ring: Ring, now: float) -> None:
        """Choose the members that stand beside us now as neighbours, and some further off."""
        topic, gossip = joined.keys.topic, self._gossip
        joined.wanted = ring.wanted
        held, before = self._beside.count_held(), self._beside.wanted_in(topic)
        wanted: dict[PeerId, tuple[str, ...]] = {}
        uncovered = 0
        for peer in ring.wanted:
            if peer not in held and len(held) >= gossip.config.most_links:
                uncovered += 1
                continue
            held[peer] = 1
            hints = before.get(peer)
            wanted[peer] = gossip.hints_of(peer) if hints is None else hints
        wanted |= joined.contacts_to_try(dict.fromkeys(ring), len(ring) > 0, self.turn)
        if uncovered > joined.uncovered:
            gossip.out.record(
                Record(Kind.DROPPED, topic, reason=Reason.TOO_MANY_LINKS, note=f"{uncovered} uncovered")
            )
        joined.uncovered = uncovered
        self._beside.want_neighbors(topic, wanted, gossip.own.epoch_at(now))
        self.tell_storage(joined, ring)

    def tell_storage(self, joined: JoinedTopic, ring: Ring) -> None:
        """Announce the members that keep the topic, if they have changed."""
        topic = joined.keys.topic
        keepers = tuple(dict.fromkeys((*self._beside.keepers(topic), *ring.keepers)))[:STORAGE_NODES]
        if keepers == joined.keepers or set(keepers) == set(joined.keepers):
            return
        joined.keepers = keepers
        nodes = tuple(Contact(peer, self._gossip.hints_of(peer)) for peer in keepers)
        self._gossip.out.notify(StorageKnown(topic, nodes))


_ADOPTED = 16
"""The most neighbours of one topic that chose us and that we did not choose; others are refused."""


class _Topic:
    """The state of one topic: the peers that we want, those that were told so, and those that count us."""

    __slots__ = ("choosers", "forgot", "keeps", "keys", "proof", "purpose", "theirs", "told", "up", "wanted")

    def __init__(self, keys: TopicKeys, keeps: bool) -> None:
        self.keys = keys
        self.keeps = keeps
        self.wanted: dict[PeerId, tuple[str, ...]] = {}
        self.told: dict[PeerId, bool] = {}
        """Peers that were told that we count them, and whether we said that we chose them."""
        self.theirs: dict[PeerId, bool] = {}
        """Peers that count us, and whether they keep the topic."""
        self.choosers: dict[PeerId, None] = {}
        """Those of `theirs` that chose us."""
        self.forgot: dict[PeerId, None] = {}
        """Peers that we want and that dropped us: if they count us again, they are told again, since they may
        have left the topic and come back."""
        self.up: dict[PeerId, None] = {}
        self.proof: tuple[int, bytes] = (-1, b"")
        """Our own proof, and its epoch."""
        self.purpose = f"ring {keys.topic.hex()[:16]}"


class NeighborAgreements:
    """Agrees with peers on being neighbours, for all topics of a node."""

    def __init__(
        self,
        ours: PeerId,
        links: Mapping[PeerId, None],
        out: Outbox,
        adjacency: Adjacency,
        names: PairNames | None = None,
    ) -> None:
        self._ours = ours
        self._links = links
        self._out = out
        self._adjacency = adjacency
        self._names = PairNames(ours) if names is None else names
        self._topics: dict[TopicId, _Topic] = {}
        self._held: dict[PeerId, int] = {}
        """Peers that are wanted, and in how many topics."""

    def neighbors(self, topic: TopicId) -> tuple[PeerId, ...]:
        """Return peers that count us and that we count, whose links are open."""
        sides = self._topics.get(topic)
        return () if sides is None else tuple(sides.up)

    def keepers(self, topic: TopicId) -> tuple[PeerId, ...]:
        """Return the neighbours that keep the topic."""
        sides = self._topics.get(topic)
        return () if sides is None else tuple([peer for peer in sides.up if sides.theirs.get(peer)])

    def count_held(self) -> dict[PeerId, int]:
        """Return the peers that are wanted, and in how many topics."""
        return dict(self._held)

    def wanted_in(self, topic: TopicId) -> Mapping[PeerId, tuple[str, ...]]:
        """Return the peers that a topic wants, with the addresses at which they were dialled."""
        return self._topics[topic].wanted

    def topics_with(self, peer: PeerId) -> list[TopicId]:
        """Return the topics in which a peer is a neighbour."""
        return [topic for topic, sides in self._topics.items() if peer in sides.up]

    def open_topic(self, keys: TopicKeys, keeps: bool, epoch: int) -> None:
        """Take part in a topic; call it again when the topic is kept from now on, or no longer."""
        sides = self._topics.get(keys.topic)
        if sides is None:
            self._topics[keys.topic] = _Topic(keys, keeps)
            self._names.add_topic(keys)
        elif sides.keeps != keeps:
            sides.keeps = keeps
            for peer in sides.told:
                self._out.send(peer, self._make_beside(sides, peer, epoch, True))

    def close_topic(self, topic: TopicId, epoch: int) -> None:
        """Leave a topic, and tell all neighbours."""
        sides = self._topics.get(topic)
        if sides is None:
            return
        self.want_neighbors(topic, {}, epoch)
        sides.choosers.clear()
        for peer in list(sides.told):
            self._refuse_peer(sides, peer, epoch)
        del self._topics[topic]
        self._names.remove_topic(topic)

    def want_neighbors(self, topic: TopicId, peers: Mapping[PeerId, tuple[str, ...]], epoch: int) -> None:
        """Set the neighbours of our choice, with the addresses to dial them at."""
        sides = self._topics[topic]
        purpose = sides.purpose
        for peer in [peer for peer in sides.wanted if peer not in peers]:
            self._want_no_more(sides, peer)
            self._tell_agreement(sides, peer, epoch)
            self._out.release(peer, purpose)
        for peer, hints in peers.items():
            if peer not in sides.wanted:
                sides.wanted[peer] = hints
                self._held[peer] = self._held.get(peer, 0) + 1
                self._out.hold(peer, hints, purpose)
            if peer in self._links and sides.told.get(peer) is not True:
                self._tell_agreement(sides, peer, epoch)

    def part_from(self, peer: PeerId, topics: Iterable[TopicId], epoch: int) -> None:
        """A peer is to be a neighbour in none of these topics: it is told, whoever chose whom."""
        for sides in [self._topics[topic] for topic in topics]:
            if peer in sides.told or peer in sides.theirs or peer in sides.choosers:
                self._refuse_peer(sides, peer, epoch)
            if peer in sides.wanted:
                self._want_no_more(sides, peer)
                self._out.release(peer, sides.purpose)

    def _want_no_more(self, sides: _Topic, peer: PeerId) -> None:
        del sides.wanted[peer]
        sides.forgot.pop(peer, None)
        self._held[peer] -= 1
        if not self._held[peer]:
            del self._held[peer]

    def handle_link_up(self, peer: PeerId, epoch: int) -> None:
        """Tell a peer whose link has opened in which topics we want it."""
        for sides in self._topics.values():
            if peer in sides.wanted:
                self._tell_agreement(sides, peer, epoch)

    def handle_link_down(self, peer: PeerId) -> None:
        """Drop a neighbour whose link has closed. A wanted peer stays wanted, and is dialled again."""
        for sides in self._topics.values():
            if peer in sides.told or peer in sides.theirs:
                sides.told.pop(peer, None)
                sides.theirs.pop(peer, None)
                sides.choosers.pop(peer, None)
                sides.forgot.pop(peer, None)
                self._update_neighbor(sides, peer)

    def handle_beside(self, peer: PeerId, message: Beside, epoch: int) -> None:
        """Note that a peer counts us as a neighbour, or no longer."""
        named = self._names.find_topic(peer, message.hint)
        sides = None if named is None else self._topics.get(named)
        if sides is None:
            if message.open:
                self._reject(peer, Reason.NOT_JOINED)
            return
        topic = sides.keys.topic
        if not message.open:
            self._handle_refusal(sides, peer)
            return
        if abs(message.epoch - epoch) > 1 or not is_proof(sides.keys, peer, message.epoch, message.proof):
            self._reject(peer, Reason.NOT_IN_TOPIC, topic)
            return
        if peer not in sides.wanted and peer not in sides.theirs and self._count_adopted(sides) >= _ADOPTED:
            self._reject(peer, Reason.TOO_MANY, topic)
            self._refuse_peer(sides, peer, epoch)
            return
        if message.chosen:
            sides.choosers[peer] = None
        else:
            sides.choosers.pop(peer, None)
        if message.chosen or peer in sides.wanted or peer in sides.told:
            # Otherwise it agrees to an edge that we have dropped meanwhile, and will be told so.
            sides.theirs[peer] = message.keeps
        if sides.forgot.pop(peer, self) is None:
            sides.told.pop(peer, None)
        self._tell_agreement(sides, peer, epoch)

    def _count_adopted(self, sides: _Topic) -> int:
        return sum(peer not in sides.wanted for peer in sides.theirs)

    def _tell_agreement(self, sides: _Topic, peer: PeerId, epoch: int) -> None:
        """Make sure that a peer knows whether we count it: we do while one of us two has chosen the other.

        A peer that only agrees must not keep an edge that the other dropped: two such peers would tell each
        other for ever.
        """
        chosen = peer in sides.wanted
        if not (chosen or peer in sides.choosers):
            if peer in sides.told:
                self._refuse_peer(sides, peer, epoch)
            else:
                self._update_neighbor(sides, peer)
            return
        if sides.told.get(peer) is not chosen:
            if peer not in self._links:
                return
            sides.told[peer] = chosen
            self._out.send(peer, self._make_beside(sides, peer, epoch, True))
        self._update_neighbor(sides, peer)

    def _handle_refusal(self, sides: _Topic, peer: PeerId) -> None:
        """Drop a peer that counts us no more, unless we chose it; it knows that without a message."""
        sides.theirs.pop(peer, None)
        sides.choosers.pop(peer, None)
        if peer in sides.wanted:
            sides.forgot[peer] = None
        else:
            sides.told.pop(peer, None)
        self._update_neighbor(sides, peer)

    def _refuse_peer(self, sides: _Topic, peer: PeerId, epoch: int) -> None:
        sides.told.pop(peer, None)
        sides.theirs.pop(peer, None)
        sides.choosers.pop(peer, None)
        if peer in self._links:
            self._out.send(peer, self._make_beside(sides, peer, epoch, False))
        self._update_neighbor(sides, peer)

    def _update_neighbor(self, sides: _Topic, peer: PeerId) -> None:
        """Announce a peer that has become a neighbour, or is none any more."""
        topic = sides.keys.topic
        is_up = peer in sides.told and peer in sides.theirs
        if is_up and peer not in sides.up:
            sides.up[peer] = None
            self._adjacency.add_neighbor(Overlay.RING, topic, peer)
            self._record_neighbors(sides)
        elif not is_up and peer in sides.up:
            del sides.up[peer]
            self._adjacency.remove_neighbor(Overlay.RING, topic, peer)
            self._record_neighbors(sides)

    def _make_beside(self, sides: _Topic, peer: PeerId, epoch: int, is_open: bool) -> Beside:
        if sides.proof[0] != epoch:
            sides.proof = (epoch, proof(sides.keys, self._ours, epoch))
        chosen = is_open and peer in sides.wanted
        return Beside(
            self._names.name_of(sides.keys.topic, peer), epoch, sides.proof[1], is_open, sides.keeps, chosen
        )

    def _record_neighbors(self, sides: _Topic) -> None:
        note = ",".join(peer[:4].hex() for peer in sides.up)
        self._out.record(Record(Kind.OVERLAY, sides.keys.topic, note=note))

    def _reject(self, peer: PeerId, reason: Reason, topic: TopicId | None = None) -> None:
        self._out.record(Record(Kind.REJECTED, topic, peer=peer, reason=reason, note="beside"))


_TRIED = 8
"""Contacts that are tried as neighbours at once, while no member is known."""


class JoinedTopic:
    """One joined topic."""

    __slots__ = ("contacts", "keepers", "keeps", "keys", "uncovered", "wanted")

    def __init__(self, keys: TopicKeys, keeps: bool, contacts: dict[PeerId, tuple[str, ...]]) -> None:
        self.keys = keys
        self.keeps = keeps
        self.contacts = contacts
        """Contacts that may be members: named in an invitation, or met before."""
        self.keepers: tuple[PeerId, ...] = ()
        self.wanted: tuple[PeerId, ...] | None = None
        """The peers that the ring wanted when neighbours were last chosen."""
        self.uncovered = 0

    @property
    def is_unsettled(self) -> bool:
        """Whether contacts or uncovered members wait for their turn, though the ring stays as it is."""
        return bool(self.contacts) or self.uncovered > 0

    def first_contacts(self) -> Mapping[PeerId, tuple[str, ...]]:
        """Return the contacts to ask when the topic is joined."""
        return dict(list(self.contacts.items())[:_TRIED])

    def contacts_to_try(
        self, members: Container[PeerId], any_known: bool, turn: int
    ) -> dict[PeerId, tuple[str, ...]]:
        """Return contacts to want as neighbours beside the known members, with the addresses to dial them at.

        Without a known member these are several at once. With some it is one at a time, in turns for ever:
        all known members may be on our side of a network partition, and the contact on the other.
        """
        outside = [(peer, hints) for peer, hints in self.contacts.items() if peer not in members]
        if not outside:
            return {}
        return dict([outside[turn % len(outside)]] if any_known else outside[:_TRIED])
