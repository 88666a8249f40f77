"""What stands for a topic where others look on: keys that only those who know the topic can derive.

A topic's id never leaves a node here. What enters filters, intersections and searches is a tag that
changes with the epoch; what travels on a link is a hint that differs for each pair of peers; what shows
that someone belongs to a topic is a proof under the ring's key. For a public topic the secret is the id
itself, so whoever can name the topic can derive all of it; for a private one only its members can.
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
    """The keys of a topic. They are secret, as far as the topic is."""

    topic: TopicId
    tag: bytes
    """What the tags of all epochs are derived from. It names the topic to nobody but its members."""
    ring: bytes
    """What members show each other that they are members with. A proxy may be given it."""

    def __repr__(self) -> str:
        return "TopicKeys(…)"


def topic_keys(topic: TopicId, secret: bytes | None = None) -> TopicKeys:
    """The keys of a topic, from the secret that its members share; a public one has none but its id."""
    shared = topic if secret is None else secret
    if len(topic) != KEY_BYTES or len(shared) < KEY_BYTES:
        raise Refused(Reason.MALFORMED, f"a topic and its secret have {KEY_BYTES} bytes each")
    return TopicKeys(topic, _derive(shared, topic, _TAG), _derive(shared, topic, _RING))


def epoch_of(now: float, days: int = 7) -> int:
    """The number of the epoch: the same at all nodes whose clocks agree."""
    return int(now // (days * DAY))


def tag_in(keys: TopicKeys, epoch: int) -> bytes:
    """The tag of a topic in an epoch (32 bytes). Tags of two epochs cannot be told to be of one topic."""
    return _derive(keys.tag, b"", _EPOCH + _number(epoch))


def hint(keys: TopicKeys, one: PeerId, other: PeerId) -> bytes:
    """What two members call the topic on their link (8 bytes); on any other link it is called otherwise."""
    low, high = sorted((one, other))
    return hmac.digest(keys.ring, _HINT + low + high, "sha256")[:HINT_BYTES]


def proof(keys: TopicKeys, peer: PeerId, epoch: int) -> bytes:
    """A word that `peer` is of the topic (16 bytes). Every member can give and read it, nobody else."""
    return hmac.digest(keys.ring, _PROOF + _number(epoch) + peer, "sha256")[:PROOF_BYTES]


def is_proof(keys: TopicKeys, peer: PeerId, epoch: int, given: bytes) -> bool:
    """Whether some member of the topic vouched for `peer` in this epoch."""
    return hmac.compare_digest(proof(keys, peer, epoch), given)


def _derive(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """HKDF-SHA256 (RFC 5869), 32 bytes: one block."""
    key = hmac.digest(salt or bytes(KEY_BYTES), secret, "sha256")
    return hmac.digest(key, info + b"\x01", "sha256")


def _number(epoch: int) -> bytes:
    return epoch.to_bytes(8, "big")
