"""Searches for members, as a node sends them out and passes on those of others: whom they go to, and when."""

from __future__ import annotations

from collections.abc import Sequence

from linnet.core.ids import PeerId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.overlay.trackerless.gossip import Gossip
from linnet.overlay.trackerless.messages import Seek, Sought
from linnet.overlay.trackerless.seeking import Found, Hop, Seeking
from linnet.overlay.trackerless.tags import TopicKeys
from linnet.trace.records import Kind, Record

_RARER = 2.0
"""How much longer the pause is with each search for a topic in a row, and how much further it goes."""
_NEAR = 0.25
"""The first search goes so far, and the next comes so soon, compared with a whole one: most topics have
members nearby, and what a search costs others grows with the square of how far it goes."""
_KNOWN = 8.0
"""Pauses after someone was found until we look for more."""
_LONGEST = 64.0
"""Pauses, at most: a topic of which we are the only member is looked for all the same, twice an hour."""


class Searches:
    """When to look for members of a topic, and along whom."""

    def __init__(self, gossip: Gossip, entropy: Entropy) -> None:
        self._gossip = gossip
        self._seeking = Seeking(gossip.config, gossip.rng, entropy, gossip.key)
        self._topics: dict[TopicId, None] = {}
        self._due: dict[TopicId, tuple[float, float]] = {}
        """When to look for a topic next, and how long to wait then."""

    def open(self, keys: TopicKeys) -> None:
        """We are in this topic."""
        self._seeking.open(keys)
        self._topics[keys.topic] = None

    def close(self, topic: TopicId) -> None:
        """We are in this topic no more."""
        self._seeking.close(topic)
        self._topics.pop(topic, None)
        self._due.pop(topic, None)

    def note_found(self, topic: TopicId, now: float) -> None:
        """Someone was found, who knows of others: more are looked for only if that does not bring them."""
        pause = self._gossip.config.seek_pause * _KNOWN
        self._due[topic] = (now + pause, pause)

    def note_lost(self, topic: TopicId) -> None:
        """Nobody is known any more: look at once."""
        self._due.pop(topic, None)

    def begin(self, keys: TopicKeys, now: float) -> None:
        """Look for members of a topic, unless that was done a while ago."""
        config = self._gossip.config
        due, pause = self._due.get(keys.topic, (now, config.seek_pause * _NEAR))
        along = self._along() if now >= due else ()
        if not along:
            return
        self._due[keys.topic] = (now + pause, min(pause * _RARER, config.seek_pause * _LONGEST))
        epoch = self._gossip.own.epoch(now)
        hops = round(config.seek_hops * min(1.0, pause / config.seek_pause))
        hop = self._seeking.begin(keys, epoch, along, self._score, now, self._near(), hops)
        self._hop(hop)

    def round(self, now: float) -> None:
        """Forget the searches of others that are over."""
        self._seeking.expire(now)

    def handle_seek(self, peer: PeerId, message: Seek, now: float) -> None:
        """A search comes by, or comes back."""
        own = self._gossip.shown(now).descriptor
        if self._topics:
            # Also silence is an answer.
            self._gossip.budget.answered(own.epoch, self._gossip.config.epsilon, now)
        along = [other for other in self._along() if other != peer]
        self._hop(self._seeking.step(peer, message, own, along, self._score, now, self._near()))

    def handle_sought(self, peer: PeerId, message: Sought, now: float) -> Found | None:
        """An answer comes by, or is for us: then it is returned."""
        hop = self._seeking.sought(peer, message, now)
        self._hop(hop)
        return hop.found

    def handle_failure(self, peer: PeerId, message: Seek | Sought, now: float) -> None:
        """A peer could not be reached: a search goes on to another, an answer is lost."""
        if isinstance(message, Sought):
            note = "an answer to a search"
            lost = Record(Kind.DROPPED, peer=peer, reason=Reason.UNREACHABLE, note=note)
            self._gossip.out.record(lost)
            return
        self._hop(self._seeking.failed(peer, message, self._along(), self._score, self._near()))

    def _near(self) -> dict[PeerId, None]:
        """Those of them who are alike: what only few of these show is no reason to stay among them."""
        return dict.fromkeys(self._gossip.clustering.view)

    def _along(self) -> Sequence[PeerId]:
        """Whom a search may go to: those who are alike, the fingers, and the sample."""
        gossip = self._gossip
        return list(
            dict.fromkeys((*gossip.clustering.view, *gossip.clustering.fingers, *gossip.sampling.view))
        )

    def _score(self, peer: PeerId) -> tuple[int, float]:
        """What a peer shows; of one that shows nothing nothing is known."""
        known = self._gossip.acquaintances.descriptor(peer)
        return (0, 0.0) if known is None else self._gossip.clustering.likeness.evidence(known)

    def _hop(self, hop: Hop) -> None:
        out = self._gossip.out
        for record in hop.records:
            out.record(record)
        for peer, message in hop.sends:
            if not self._gossip.errands.tell(peer, self._gossip.hints(peer), message):
                note = f"{type(message).__name__}: too much waits for this link"
                out.record(Record(Kind.DROPPED, peer=peer, reason=Reason.QUEUE_FULL, note=note))
