"""A node's topics as a Bloom filter, and the one randomised copy of it that others may see in an epoch.

Randomising is BLIP (Alaggan, Gambs, Kermarrec 2012): every bit is flipped with the same probability, so
that no filter says for certain whether a topic is in it. The promise is for one release. A second one of
the same topics with new noise would be averaged with the first, and one of other topics with the same
noise would show the difference exactly; `linnet.overlay.trackerless.own` sees to it that there is one for
each epoch.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import blake2b, shake_256
from math import log
from struct import unpack

from msgspec import Struct

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.overlay.trackerless.estimates import flip_probability
from linnet.overlay.trackerless.messages import FILTER_BYTES
from linnet.overlay.trackerless.tags import KEY_BYTES, TopicKeys, tag_in

FULLEST = 0.25
"""Share of bits that an honest filter sets at most before it is randomised; see `most_topics`."""

_POSITIONS = b"linnet/overlay/bits/1"
_NOISE = b"linnet/overlay/noise/1"
_DUMMY = b"linnet/overlay/dummy/1"
_CHOICE = b"linnet/overlay/choice/1"
_WORD = 8


class Interests(Struct, frozen=True, gc=False):
    """Our own topics in an epoch, exactly. They stay with us."""

    epoch: int
    bits: int
    """Bit i of the number is bit i of the filter."""
    topics: int
    size: int
    """Bits of the filter."""
    hashes: int

    def __repr__(self) -> str:
        return f"Interests(epoch={self.epoch}, …)"


class Release(Struct, frozen=True, gc=False):
    """The filter that everyone may see, with what is needed to read it; all of it goes into a descriptor."""

    epoch: int
    filter: bytes
    epsilon_milli: int
    hashes: int


def positions(tag: bytes, epoch: int, size: int, hashes: int) -> tuple[int, ...]:
    """The bits that a tag sets: others in each epoch."""
    key = _POSITIONS + epoch.to_bytes(8, "big")
    return tuple(
        int.from_bytes(blake2b(tag + bytes([i]), digest_size=_WORD, key=key).digest(), "big") % size
        for i in range(hashes)
    )


def bits_of(tags: Iterable[bytes], epoch: int, size: int, hashes: int) -> int:
    """The filter of some tags, as a number."""
    bits = 0
    for tag in tags:
        for position in positions(tag, epoch, size, hashes):
            bits |= 1 << position
    return bits


def interests(topics: Iterable[TopicKeys], epoch: int, config: TrackerlessConfig) -> Interests:
    """Our topics, to compare the filters of others with."""
    tags = [tag_in(keys, epoch) for keys in topics]
    size, hashes = config.filter_bits, config.filter_hashes
    return Interests(epoch, bits_of(tags, epoch, size, hashes), len(tags), size, hashes)


def most_topics(size: int, hashes: int) -> int:
    """Topics that a filter shows at most: one that is fuller than a quarter is not believed by others."""
    return int(-size / hashes * log(1 - FULLEST))


def release(
    tags: Iterable[bytes], epoch: int, noise_key: bytes, config: TrackerlessConfig, network: bytes = b""
) -> Release:
    """The randomised filter of these tags: with the same arguments the same, otherwise independent.

    Nobody can tell the few tags of a node with less than `least_topics` from the dummies beside them. Of
    more than `most_topics` some are shown, chosen anew for each epoch.
    """
    size, hashes = config.filter_bits, config.filter_hashes
    epsilon_milli = round(config.epsilon * 1000)
    if size % _WORD or not _WORD <= size <= FILTER_BYTES * 8 or not 1 <= hashes <= 16:
        raise Refused(Reason.MALFORMED, f"no filter has {size} bits and {hashes} hashes")
    if not 1 <= epsilon_milli <= 1_000_000 or len(noise_key) < KEY_BYTES:
        raise Refused(Reason.MALFORMED, "epsilon is between 0.001 and 1000, and the key of 32 bytes")
    key = hmac.digest(noise_key, _NOISE + epoch.to_bytes(8, "big") + network, "sha256")
    shown = list(tags)
    if len(shown) > (most := most_topics(size, hashes)):
        shown = sorted(shown, key=lambda tag: hmac.digest(key, _CHOICE + tag, "sha256"))[:most]
    lacking = max(0, config.least_topics - len(shown))
    shown += [hmac.digest(key, _DUMMY + bytes([i]), "sha256") for i in range(lacking)]
    bits = bits_of(shown, epoch, size, hashes)
    set_of_tags = b"".join(sorted(shown)) + epsilon_milli.to_bytes(4, "big") + bytes([hashes])
    noise = _flips(hmac.digest(key, set_of_tags, "sha256"), size, flip_probability(epsilon_milli, hashes))
    return Release(epoch, (bits ^ noise).to_bytes(size // 8, "little"), epsilon_milli, hashes)


def _flips(key: bytes, size: int, probability: float) -> int:
    """Bits that are each 1 with this probability, to 64 binary places.

    The key depends on the tags as well: should other topics ever be released in the same epoch, the
    noise is new, and the two do not differ in just the topic that changed.
    """
    threshold = int(probability * 2**64)
    words = unpack(f">{size}Q", shake_256(key).digest(size * _WORD))
    return sum(1 << i for i, word in enumerate(words) if word < threshold)
