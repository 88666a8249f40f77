"""Who is a neighbour of whom in the topics without trackers: wanted, linked, and agreed on by both.

A node wants its neighbours on the ring and some members beside. It holds them, and tells each, by a hint
that only the two can read, that it counts it as a neighbour; the other does the same, and from then on both
pass events to each other. Each says whether it chose the other or only agrees: two are neighbours as long as
one of them chose, and whoever is chosen by nobody any more is told so.
"""

from __future__ import annotations

from collections.abc import Mapping

from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.overlay.adjacency import Adjacency
from linnet.overlay.config import Overlay
from linnet.overlay.trackerless.messages import Beside
from linnet.overlay.trackerless.names import Names
from linnet.overlay.trackerless.tags import TopicKeys, is_proof, proof
from linnet.trace.records import Kind, Record

_ADOPTED = 16
"""Neighbours of one topic that chose us and that we did not choose, at most: the rest are told no."""


class _Sides:
    """One topic: whom we want, who is told, who counts us."""

    __slots__ = ("choosers", "forgot", "keeps", "keys", "proof", "purpose", "theirs", "told", "up", "wanted")

    def __init__(self, keys: TopicKeys, keeps: bool) -> None:
        self.keys = keys
        self.keeps = keeps
        self.wanted: dict[PeerId, tuple[str, ...]] = {}
        self.told: dict[PeerId, bool] = {}
        """Peers that were told that we count them, and whether it was said that we chose them."""
        self.theirs: dict[PeerId, bool] = {}
        """Peers that count us, and whether they keep the topic."""
        self.choosers: dict[PeerId, None] = {}
        """Those of them that chose us."""
        self.forgot: dict[PeerId, None] = {}
        """Peers that we want and that let us go: should they count us again, they are told again, since they
        may have left the topic and come back."""
        self.up: dict[PeerId, None] = {}
        self.proof: tuple[int, bytes] = (-1, b"")
        """Our own proof, and the epoch that it is of."""
        self.purpose = f"ring {keys.topic.hex()[:16]}"


class BesideUs:
    """The neighbours of all topics of a node."""

    def __init__(
        self,
        ours: PeerId,
        links: Mapping[PeerId, None],
        out: Outbox,
        adjacency: Adjacency,
        names: Names | None = None,
    ) -> None:
        self._ours = ours
        self._links = links
        self._out = out
        self._adjacency = adjacency
        self._names = Names(ours) if names is None else names
        self._topics: dict[TopicId, _Sides] = {}
        self._held: dict[PeerId, int] = {}
        """Peers that are wanted, and in how many topics."""

    def neighbors(self, topic: TopicId) -> tuple[PeerId, ...]:
        """Peers that we count and that count us, whose links are open."""
        sides = self._topics.get(topic)
        return () if sides is None else tuple(sides.up)

    def keepers(self, topic: TopicId) -> tuple[PeerId, ...]:
        """Neighbours that keep the topic."""
        sides = self._topics.get(topic)
        return () if sides is None else tuple([peer for peer in sides.up if sides.theirs.get(peer)])

    def held(self) -> dict[PeerId, int]:
        """Peers that are wanted, and in how many topics."""
        return dict(self._held)

    def wanted(self, topic: TopicId) -> Mapping[PeerId, tuple[str, ...]]:
        """Whom a topic wants, with where they were dialled."""
        return self._topics[topic].wanted

    def topics_with(self, peer: PeerId) -> list[TopicId]:
        """The topics in which a peer is a neighbour."""
        return [topic for topic, sides in self._topics.items() if peer in sides.up]

    def open(self, keys: TopicKeys, keeps: bool, epoch: int) -> None:
        """Take part in a topic; once more, if only it is kept now or no longer."""
        sides = self._topics.get(keys.topic)
        if sides is None:
            self._topics[keys.topic] = _Sides(keys, keeps)
            self._names.open(keys)
        elif sides.keeps != keeps:
            sides.keeps = keeps
            for peer in sides.told:
                self._out.send(peer, self._beside(sides, peer, epoch, True))

    def close(self, topic: TopicId, epoch: int) -> None:
        """Take part no more: all neighbours are told."""
        sides = self._topics.get(topic)
        if sides is None:
            return
        self.want(topic, {}, epoch)
        sides.choosers.clear()
        for peer in list(sides.told):
            self._tell_off(sides, peer, epoch)
        del self._topics[topic]
        self._names.close(topic)

    def want(self, topic: TopicId, peers: Mapping[PeerId, tuple[str, ...]], epoch: int) -> None:
        """These are to be our neighbours, with where to dial them, and no others of our choosing."""
        sides = self._topics[topic]
        purpose = sides.purpose
        for peer in [peer for peer in sides.wanted if peer not in peers]:
            del sides.wanted[peer]
            sides.forgot.pop(peer, None)
            self._held[peer] -= 1
            if not self._held[peer]:
                del self._held[peer]
            self._agree(sides, peer, epoch)
            self._out.release(peer, purpose)
        for peer, hints in peers.items():
            if peer not in sides.wanted:
                sides.wanted[peer] = hints
                self._held[peer] = self._held.get(peer, 0) + 1
                self._out.hold(peer, hints, purpose)
            if peer in self._links and sides.told.get(peer) is not True:
                self._agree(sides, peer, epoch)

    def handle_link_up(self, peer: PeerId, epoch: int) -> None:
        """A link is open: whoever is wanted is told."""
        for sides in self._topics.values():
            if peer in sides.wanted:
                self._agree(sides, peer, epoch)

    def handle_link_down(self, peer: PeerId) -> None:
        """A link is gone. Whoever is wanted stays so, and is dialled again."""
        for sides in self._topics.values():
            if peer in sides.told or peer in sides.theirs:
                sides.told.pop(peer, None)
                sides.theirs.pop(peer, None)
                sides.choosers.pop(peer, None)
                sides.forgot.pop(peer, None)
                self._settle(sides, peer)

    def hear(self, peer: PeerId, message: Beside, epoch: int) -> None:
        """A peer counts us as a neighbour, or no longer."""
        named = self._names.topic(peer, message.hint)
        sides = None if named is None else self._topics.get(named)
        if sides is None:
            if message.open:
                self._reject(peer, Reason.NOT_JOINED)
            return
        topic = sides.keys.topic
        if not message.open:
            self._hear_refusal(sides, peer)
            return
        if abs(message.epoch - epoch) > 1 or not is_proof(sides.keys, peer, message.epoch, message.proof):
            self._reject(peer, Reason.NOT_IN_TOPIC, topic)
            return
        if peer not in sides.wanted and peer not in sides.theirs and self._adopted(sides) >= _ADOPTED:
            self._reject(peer, Reason.TOO_MANY, topic)
            self._tell_off(sides, peer, epoch)
            return
        if message.chosen:
            sides.choosers[peer] = None
        else:
            sides.choosers.pop(peer, None)
        if message.chosen or peer in sides.wanted or peer in sides.told:
            # Else it agrees to what we let go meanwhile, and will hear of that.
            sides.theirs[peer] = message.keeps
        if sides.forgot.pop(peer, self) is None:
            sides.told.pop(peer, None)
        self._agree(sides, peer, epoch)

    def _adopted(self, sides: _Sides) -> int:
        return sum(peer not in sides.wanted for peer in sides.theirs)

    def _agree(self, sides: _Sides, peer: PeerId, epoch: int) -> None:
        """See to it that a peer knows whether we count it: as long as we or it chose the other.

        Who only agrees must not keep up what the other let go: two who do so tell each other for ever.
        """
        chosen = peer in sides.wanted
        if not (chosen or peer in sides.choosers):
            if peer in sides.told:
                self._tell_off(sides, peer, epoch)
            else:
                self._settle(sides, peer)
            return
        if sides.told.get(peer) is not chosen:
            if peer not in self._links:
                return
            sides.told[peer] = chosen
            self._out.send(peer, self._beside(sides, peer, epoch, True))
        self._settle(sides, peer)

    def _hear_refusal(self, sides: _Sides, peer: PeerId) -> None:
        """A peer counts us no more. Unless we chose it we do the same, and it knows without a word."""
        sides.theirs.pop(peer, None)
        sides.choosers.pop(peer, None)
        if peer in sides.wanted:
            sides.forgot[peer] = None
        else:
            sides.told.pop(peer, None)
        self._settle(sides, peer)

    def _tell_off(self, sides: _Sides, peer: PeerId, epoch: int) -> None:
        sides.told.pop(peer, None)
        sides.theirs.pop(peer, None)
        sides.choosers.pop(peer, None)
        if peer in self._links:
            self._out.send(peer, self._beside(sides, peer, epoch, False))
        self._settle(sides, peer)

    def _settle(self, sides: _Sides, peer: PeerId) -> None:
        """Say who has become a neighbour, and who is none any more."""
        topic = sides.keys.topic
        is_up = peer in sides.told and peer in sides.theirs
        if is_up and peer not in sides.up:
            sides.up[peer] = None
            self._adjacency.add(Overlay.RING, topic, peer)
            self._record(sides)
        elif not is_up and peer in sides.up:
            del sides.up[peer]
            self._adjacency.remove(Overlay.RING, topic, peer)
            self._record(sides)

    def _beside(self, sides: _Sides, peer: PeerId, epoch: int, is_open: bool) -> Beside:
        if sides.proof[0] != epoch:
            sides.proof = (epoch, proof(sides.keys, self._ours, epoch))
        chosen = is_open and peer in sides.wanted
        return Beside(
            self._names.of(sides.keys.topic, peer), epoch, sides.proof[1], is_open, sides.keeps, chosen
        )

    def _record(self, sides: _Sides) -> None:
        note = ",".join(peer[:4].hex() for peer in sides.up)
        self._out.record(Record(Kind.OVERLAY, sides.keys.topic, note=note))

    def _reject(self, peer: PeerId, reason: Reason, topic: TopicId | None = None) -> None:
        self._out.record(Record(Kind.REJECTED, topic, peer=peer, reason=reason, note="beside"))
