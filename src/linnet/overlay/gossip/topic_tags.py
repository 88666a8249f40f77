"""The keys and tags that stand for a topic in public: only nodes that know the topic can derive them.

A topic's id never leaves a node here. Filters, intersections and searches use a tag that changes with the
epoch; messages on a link use a hint that differs for each pair of peers; a proof under the ring's key shows
that a peer belongs to a topic. For a public topic the secret is the id itself, so a node that can name the
topic can derive all of it; for a private one only its members can.
"""

from __future__ import annotations

import hmac

from msgspec import Struct

from linnet.core.errors import Refused
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason

KEY_BYTES = 32
PROOF_BYTES = 16
HINT_BYTES = 8
DAY = 86_400

_TAG = b"linnet/overlay/tag/1"
_RING = b"linnet/overlay/ring/1"
_EPOCH = b"linnet/overlay/epoch/1"
_HINT = b"linnet/overlay/hint/1"
_PROOF = b"linnet/overlay/proof/1"


class TopicKeys(Struct, frozen=True, gc=False):
    """The keys of a topic. They are as secret as the topic is."""

    topic: TopicId
    tag: bytes
    """The secret from which the tags of all epochs are derived. It names the topic to its members alone."""
    ring: bytes
    """The key by which members prove their membership to each other. A proxy may be given it."""

    def __repr__(self) -> str:
        return "TopicKeys(…)"


def topic_keys(topic: TopicId, secret: bytes | None = None) -> TopicKeys:
    """Derive the keys of a topic from the secret that its members share; a public one has only its id."""
    shared = topic if secret is None else secret
    if len(topic) != KEY_BYTES or len(shared) < KEY_BYTES:
        raise Refused(Reason.MALFORMED, f"a topic and its secret have {KEY_BYTES} bytes each")
    return TopicKeys(topic, _derive(shared, topic, _TAG), _derive(shared, topic, _RING))


def epoch_of(now: float, days: int = 7) -> int:
    """Return the number of the epoch: the same at all nodes whose clocks agree."""
    return int(now // (days * DAY))


def tag_in(keys: TopicKeys, epoch: int) -> bytes:
    """Return the tag of a topic in an epoch (32 bytes). Tags of two epochs cannot be linked."""
    return _derive(keys.tag, b"", _EPOCH + _number(epoch))


def hint(keys: TopicKeys, one: PeerId, other: PeerId) -> bytes:
    """Return the name of the topic on the link of two members (8 bytes); on each link it is another."""
    low, high = sorted((one, other))
    return hmac.digest(keys.ring, _HINT + low + high, "sha256")[:HINT_BYTES]


def proof(keys: TopicKeys, peer: PeerId, epoch: int) -> bytes:
    """Make a proof that `peer` is in the topic (16 bytes). Every member can make and check it, nobody
    else."""
    return hmac.digest(keys.ring, _PROOF + _number(epoch) + peer, "sha256")[:PROOF_BYTES]


def is_proof(keys: TopicKeys, peer: PeerId, epoch: int, given: bytes) -> bool:
    """Return whether a member of the topic vouched for `peer` in this epoch."""
    return hmac.compare_digest(proof(keys, peer, epoch), given)


def _derive(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """Derive 32 bytes by HKDF-SHA256 (RFC 5869): one block."""
    key = hmac.digest(salt or bytes(KEY_BYTES), secret, "sha256")
    return hmac.digest(key, info + b"\x01", "sha256")


def _number(epoch: int) -> bytes:
    return epoch.to_bytes(8, "big")


PEERS = 256
"""Peers whose names for our topics are remembered; beyond, those of the oldest are computed anew."""


class PairNames:
    """The hints for all topics of a node, for each peer that shares them."""

    __slots__ = ("_keys", "_ours", "_peers", "_remembered")

    def __init__(self, ours: PeerId, remembered: int = PEERS) -> None:
        self._ours = ours
        self._remembered = remembered
        self._keys: dict[TopicId, TopicKeys] = {}
        self._peers: dict[PeerId, dict[TopicId, bytes]] = {}

    def __len__(self) -> int:
        """Return the number of peers for which names are remembered."""
        return len(self._peers)

    def add_topic(self, keys: TopicKeys) -> None:
        """Let a topic be named from now on."""
        self._keys[keys.topic] = keys

    def remove_topic(self, topic: TopicId) -> None:
        """Forget the names of a topic."""
        if self._keys.pop(topic, None) is not None:
            for names in self._peers.values():
                names.pop(topic, None)

    def name_of(self, topic: TopicId, peer: PeerId) -> bytes:
        """Return the hint for one of our topics between a peer and us."""
        names = self._peers.get(peer)
        if names is not None:
            known = names.get(topic)
            if known is not None:
                return known
        return self._remember(topic, peer, hint(self._keys[topic], self._ours, peer))

    def find_topic(self, peer: PeerId, name: bytes) -> TopicId | None:
        """Return our topic that a peer calls so, which shows that it holds the key; None: it is none of
        ours."""
        for topic, known in self._peers.get(peer, {}).items():
            if known == name:
                return topic
        for topic, keys in self._keys.items():
            if hint(keys, self._ours, peer) == name:
                self._remember(topic, peer, name)
                return topic
        return None

    def _remember(self, topic: TopicId, peer: PeerId, name: bytes) -> bytes:
        names = self._peers.get(peer)
        if names is None:
            if len(self._peers) >= self._remembered:
                del self._peers[next(iter(self._peers))]
            names = self._peers[peer] = {}
        names[topic] = name
        return name
