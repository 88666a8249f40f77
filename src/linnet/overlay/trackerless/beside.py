"""Who is a neighbour of whom in the topics without trackers: wanted, linked, and agreed on by both.

A node wants its neighbours on the ring and some members beside. It holds them, and tells each, by a hint
that only the two can read, that it counts it as a neighbour; the other does the same, and from then on both
pass events to each other. Each says whether it chose the other or only agrees: two are neighbours as long as
one of them chose, and whoever is chosen by nobody any more is told so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from linnet.core.effects import Hold, Release, Send
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.overlay.notices import NeighborDown, NeighborUp
from linnet.overlay.trackerless.messages import Beside
from linnet.overlay.trackerless.names import Names
from linnet.overlay.trackerless.tags import TopicKeys, is_proof, proof
from linnet.trace.records import Kind, Record

BesideEffect: TypeAlias = Send[Beside] | Hold | Release | NeighborUp | NeighborDown | Record

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

    def __init__(self, ours: PeerId, links: Mapping[PeerId, None], names: Names | None = None) -> None:
        self._ours = ours
        self._links = links
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

    def open(self, keys: TopicKeys, keeps: bool, epoch: int) -> list[BesideEffect]:
        """Take part in a topic; once more, if only it is kept now or no longer."""
        sides = self._topics.get(keys.topic)
        if sides is None:
            self._topics[keys.topic] = _Sides(keys, keeps)
            self._names.open(keys)
            return []
        if sides.keeps == keeps:
            return []
        sides.keeps = keeps
        return [Send(peer, self._beside(sides, peer, epoch, True)) for peer in sides.told]

    def close(self, topic: TopicId, epoch: int) -> list[BesideEffect]:
        """Take part no more: all neighbours are told."""
        sides = self._topics.get(topic)
        if sides is None:
            return []
        effects = self.want(topic, {}, epoch)
        sides.choosers.clear()
        for peer in list(sides.told):
            effects += self._tell_off(sides, peer, epoch)
        del self._topics[topic]
        self._names.close(topic)
        return effects

    def want(self, topic: TopicId, peers: Mapping[PeerId, tuple[str, ...]], epoch: int) -> list[BesideEffect]:
        """These are to be our neighbours, with where to dial them, and no others of our choosing."""
        sides = self._topics[topic]
        effects: list[BesideEffect] = []
        purpose = sides.purpose
        for peer in [peer for peer in sides.wanted if peer not in peers]:
            del sides.wanted[peer]
            sides.forgot.pop(peer, None)
            self._held[peer] -= 1
            if not self._held[peer]:
                del self._held[peer]
            effects += self._agree(sides, peer, epoch)
            effects.append(Release(peer, purpose))
        for peer, hints in peers.items():
            if peer not in sides.wanted:
                sides.wanted[peer] = hints
                self._held[peer] = self._held.get(peer, 0) + 1
                effects.append(Hold(peer, hints, purpose))
            if peer in self._links and sides.told.get(peer) is not True:
                effects += self._agree(sides, peer, epoch)
        return effects

    def linked(self, peer: PeerId, epoch: int) -> list[BesideEffect]:
        """A link is open: whoever is wanted is told."""
        effects: list[BesideEffect] = []
        for sides in self._topics.values():
            if peer in sides.wanted:
                effects += self._agree(sides, peer, epoch)
        return effects

    def lost(self, peer: PeerId) -> list[BesideEffect]:
        """A link is gone. Whoever is wanted stays so, and is dialled again."""
        effects: list[BesideEffect] = []
        for sides in self._topics.values():
            if peer in sides.told or peer in sides.theirs:
                sides.told.pop(peer, None)
                sides.theirs.pop(peer, None)
                sides.choosers.pop(peer, None)
                sides.forgot.pop(peer, None)
                effects += self._settle(sides, peer)
        return effects

    def heard(self, peer: PeerId, message: Beside, epoch: int) -> list[BesideEffect]:
        """A peer counts us as a neighbour, or no longer."""
        named = self._names.topic(peer, message.hint)
        sides = None if named is None else self._topics.get(named)
        if sides is None:
            return [_rejected(peer, Reason.NOT_JOINED)] if message.open else []
        topic = sides.keys.topic
        if not message.open:
            return self._told_off(sides, peer)
        if abs(message.epoch - epoch) > 1 or not is_proof(sides.keys, peer, message.epoch, message.proof):
            return [_rejected(peer, Reason.NOT_IN_TOPIC, topic)]
        if peer not in sides.wanted and peer not in sides.theirs and self._adopted(sides) >= _ADOPTED:
            return [_rejected(peer, Reason.TOO_MANY, topic), *self._tell_off(sides, peer, epoch)]
        if message.chosen:
            sides.choosers[peer] = None
        else:
            sides.choosers.pop(peer, None)
        if message.chosen or peer in sides.wanted or peer in sides.told:
            # Else it agrees to what we let go meanwhile, and will hear of that.
            sides.theirs[peer] = message.keeps
        if sides.forgot.pop(peer, self) is None:
            sides.told.pop(peer, None)
        return self._agree(sides, peer, epoch)

    def _adopted(self, sides: _Sides) -> int:
        return sum(peer not in sides.wanted for peer in sides.theirs)

    def _agree(self, sides: _Sides, peer: PeerId, epoch: int) -> list[BesideEffect]:
        """See to it that a peer knows whether we count it: as long as we or it chose the other.

        Who only agrees must not keep up what the other let go: two who do so tell each other for ever.
        """
        chosen = peer in sides.wanted
        if not (chosen or peer in sides.choosers):
            if peer in sides.told:
                return self._tell_off(sides, peer, epoch)
            return self._settle(sides, peer)
        if sides.told.get(peer) is chosen:
            return self._settle(sides, peer)
        if peer not in self._links:
            return []
        sides.told[peer] = chosen
        told: list[BesideEffect] = [Send(peer, self._beside(sides, peer, epoch, True))]
        return told + self._settle(sides, peer)

    def _told_off(self, sides: _Sides, peer: PeerId) -> list[BesideEffect]:
        """A peer counts us no more. Unless we chose it we do the same, and it knows without a word."""
        sides.theirs.pop(peer, None)
        sides.choosers.pop(peer, None)
        if peer in sides.wanted:
            sides.forgot[peer] = None
        else:
            sides.told.pop(peer, None)
        return self._settle(sides, peer)

    def _tell_off(self, sides: _Sides, peer: PeerId, epoch: int) -> list[BesideEffect]:
        sides.told.pop(peer, None)
        sides.theirs.pop(peer, None)
        sides.choosers.pop(peer, None)
        told: list[BesideEffect] = [Send(peer, self._beside(sides, peer, epoch, False))]
        return (told if peer in self._links else []) + self._settle(sides, peer)

    def _settle(self, sides: _Sides, peer: PeerId) -> list[BesideEffect]:
        """Say who has become a neighbour, and who is none any more."""
        topic = sides.keys.topic
        is_up = peer in sides.told and peer in sides.theirs
        if is_up and peer not in sides.up:
            sides.up[peer] = None
            return [NeighborUp(topic, peer), self._record(sides)]
        if not is_up and peer in sides.up:
            del sides.up[peer]
            return [NeighborDown(topic, peer), self._record(sides)]
        return []

    def _beside(self, sides: _Sides, peer: PeerId, epoch: int, is_open: bool) -> Beside:
        if sides.proof[0] != epoch:
            sides.proof = (epoch, proof(sides.keys, self._ours, epoch))
        chosen = is_open and peer in sides.wanted
        return Beside(
            self._names.of(sides.keys.topic, peer), epoch, sides.proof[1], is_open, sides.keeps, chosen
        )

    def _record(self, sides: _Sides) -> Record:
        return Record(Kind.OVERLAY, sides.keys.topic, note=",".join(peer[:4].hex() for peer in sides.up))


def _rejected(peer: PeerId, reason: Reason, topic: TopicId | None = None) -> Record:
    return Record(Kind.REJECTED, topic, peer=peer, reason=reason, note="beside")
