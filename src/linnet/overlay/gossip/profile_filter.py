"""A node's topics as a Bloom filter, and the one randomised copy of it that others may see in an epoch.

Randomising is BLIP (Alaggan, Gambs, Kermarrec 2012): every bit is flipped with the same probability, so
that no filter says for certain whether a topic is in it. The promise is for one release. A second one of
the same topics with new noise would be averaged with the first, and one of other topics with the same
noise would show the difference exactly; `linnet.overlay.gossip.descriptor` sees to it that there is one for
each epoch.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b, shake_256
from math import exp, log, log1p, sqrt
from struct import unpack

from msgspec import Struct

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.messages import FILTER_BYTES, Descriptor
from linnet.overlay.gossip.topic_tags import KEY_BYTES, TopicKeys, tag_in

FULLEST = 0.25
"""Share of bits that an honest filter sets at most before it is randomised; see `most_topics`."""

_POSITIONS = b"linnet/overlay/bits/1"
_NOISE = b"linnet/overlay/noise/1"
_DUMMY = b"linnet/overlay/dummy/1"
_CHOICE = b"linnet/overlay/choice/1"
_WORD = 8


class Interests(Struct, frozen=True, gc=False):
    """Our own exact topics in an epoch. They stay on this node."""

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
    """The filter that anyone may see, with the parameters to read it; all of it goes into a descriptor."""

    epoch: int
    filter: bytes
    epsilon_milli: int
    hashes: int


def bit_positions(tag: bytes, epoch: int, size: int, hashes: int) -> tuple[int, ...]:
    """Return the bits that a tag sets: different ones in each epoch."""
    key = _POSITIONS + epoch.to_bytes(8, "big")
    return tuple(
        int.from_bytes(blake2b(tag + bytes([i]), digest_size=_WORD, key=key).digest(), "big") % size
        for i in range(hashes)
    )


def bits_of(tags: Iterable[bytes], epoch: int, size: int, hashes: int) -> int:
    """Return the filter of some tags, as a number."""
    bits = 0
    for tag in tags:
        for position in bit_positions(tag, epoch, size, hashes):
            bits |= 1 << position
    return bits


def make_interests(topics: Iterable[TopicKeys], epoch: int, config: TrackerlessConfig) -> Interests:
    """Return our topics, for comparison with the filters of others."""
    tags = [tag_in(keys, epoch) for keys in topics]
    size, hashes = config.filter_bits, config.filter_hashes
    return Interests(epoch, bits_of(tags, epoch, size, hashes), len(tags), size, hashes)


def most_topics(size: int, hashes: int) -> int:
    """Return the most topics that a filter shows: others do not believe one that is fuller than a quarter."""
    return int(-size / hashes * log(1 - FULLEST))


def make_release(
    tags: Iterable[bytes], epoch: int, noise_key: bytes, config: TrackerlessConfig, network: bytes = b""
) -> Release:
    """Make the randomised filter of these tags: the same for the same arguments, otherwise independent.

    Nobody can tell the few tags of a node with less than `least_topics` from the dummies beside them. Of more
    than `most_topics` a subset is shown, chosen anew for each epoch.
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
    """Draw bits that are each 1 with this probability, to 64 binary places.

    The key depends on the tags as well: should other topics ever be released in the same epoch, the noise is
    new, and the two filters do not differ in just the topic that changed.
    """
    threshold = int(probability * 2**64)
    words = unpack(f">{size}Q", shake_256(key).digest(size * _WORD))
    return sum(1 << i for i, word in enumerate(words) if word < threshold)


_STEEPEST = 27.0
"""Largest epsilon per bit that differs from certainty: p stays above 10⁻¹², so that logarithms exist."""


class ShownFilter(Struct, frozen=True, gc=False):
    """A randomised filter that was read from a descriptor."""

    epoch: int
    bits: int
    size: int
    hashes: int
    flip: float
    """The probability that a bit was flipped; below one half."""
    ones: float
    """The estimated number of bits set before the noise; between 1 and `size`, 0 if there is no filter."""


@lru_cache(maxsize=1024)
def flip_probability(epsilon_milli: int, hashes: int) -> float:
    """Return p = 1 / (1 + e^(ε/k)): one topic changes k bits, and each discloses ε/k at most."""
    return 1 / (1 + exp(min(epsilon_milli / 1000 / hashes, _STEEPEST)))


@lru_cache(maxsize=4096)
def read_filter(descriptor: Descriptor) -> ShownFilter:
    """Read the filter of a descriptor; without one, or with pure noise, nothing is shown.

    It is read to check it, and again to compare it, so the latest ones are remembered.
    """
    size = len(descriptor.filter) * 8
    if not size or not descriptor.epsilon_milli:
        return ShownFilter(descriptor.epoch, 0, 0, descriptor.hashes, 0.0, 0.0)
    bits = int.from_bytes(descriptor.filter, "little")
    flip = flip_probability(descriptor.epsilon_milli, descriptor.hashes)
    ones = min(max(size_of(bits, size, flip), 1.0), float(size))
    return ShownFilter(descriptor.epoch, bits, size, descriptor.hashes, flip, ones)


def size_of(noisy: int, size: int, flip: float) -> float:
    """Return |B|: the estimated number of bits set before the noise; unbiased, so it may be below 0."""
    return (noisy.bit_count() - size * flip) / (1 - 2 * flip)


def one_sided(own: int, noisy: int, flip: float) -> float:
    """Return S₁: bits common to our exact filter and another's; unbiased, variance |A|v."""
    return ((own & noisy).bit_count() - flip * own.bit_count()) / (1 - 2 * flip)


def two_sided(one: ShownFilter, other: ShownFilter) -> float:
    """Return S₂: bits common to two filters of which only randomised copies are known; unbiased."""
    p, q = one.flip, other.flip
    both = (one.bits & other.bits).bit_count()
    mixed = q * one.bits.bit_count() + p * other.bits.bit_count()
    return (both - mixed + one.size * p * q) / ((1 - 2 * p) * (1 - 2 * q))


def cosine(own: int, shown: ShownFilter) -> float:
    """Return the similarity of our topics and another's: S₁ / √(|A||B|), within 0 and 1."""
    ours = own.bit_count()
    if not ours or not shown.size:
        return 0.0
    return min(max(one_sided(own, shown.bits, shown.flip) / sqrt(ours * shown.ones), 0.0), 1.0)


def topics_of(ones: float, size: int, hashes: int) -> float:
    """Return how many topics set so many bits: -(m/k) ln(1 - |B|/m). A full filter counts as one with a bit
    left."""
    return -size / hashes * log1p(-min(max(ones, 0.0), size - 1.0) / size)


def common_topics(own: int, topics: int, shown: ShownFilter) -> float:
    """Return t: topics that we and another node have in common; nearly unbiased, so it may be below 0.

    The zeros of the union of both filters tell how many different topics the two have; our number and the
    other's exceed it by the common ones.
    """
    union = own.bit_count() + shown.ones - one_sided(own, shown.bits, shown.flip)
    together = log(_zeros(union, shown.size)) / (shown.hashes * log1p(-1 / shown.size))
    return topics + topics_of(shown.ones, shown.size, shown.hashes) - together


def spread_of_common(own: int, topics: int, common: float, shown: ShownFilter) -> float:
    """Return the standard deviation of `common_topics` if so many are common.

    The noise of a bit inside A counts 1/z(B), of one outside 1/z(B) - 1/z(A or B), with z the share of zeros;
    and each pair of topics that is not all in B may share a bit by chance.
    """
    m, k, p = shown.size, shown.hashes, shown.flip
    v = p * (1 - p) / (1 - 2 * p) ** 2
    theirs = topics_of(shown.ones, m, k)
    together = max(topics + theirs - max(common, 0.0), theirs)
    alone, both = _zeros(shown.ones, m), exp(-k * together / m)
    ours = own.bit_count()
    noise = v * (ours / alone**2 + (m - ours) * (1 / alone - 1 / both) ** 2) / k**2
    return sqrt(noise + (together**2 - theirs**2) / (2 * m))


def likelihood(shown: ShownFilter, positions: Iterable[int]) -> float:
    """Return the log likelihood ratio of the filter with a tag of these bits against one without it.

    It guides a search for the members of a topic, and an observer would compute just the same.
    """
    if not shown.size:
        return 0.0
    hit, miss = _evidence(shown.flip, shown.ones / shown.size)
    bits = shown.bits
    return sum([hit if bits >> position & 1 else miss for position in positions])


def evidence(shown: ShownFilter) -> float:
    """Return the weight of one set bit as evidence for a tag that has it; never below zero."""
    return _evidence(shown.flip, shown.ones / shown.size)[0] if shown.size else 0.0


@lru_cache(maxsize=4096)
def _evidence(p: float, fill: float) -> tuple[float, float]:
    """Return the weight of a bit as evidence for a tag if it is set, and if it is not."""
    by_chance = fill * (1 - p) + (1 - fill) * p
    return log((1 - p) / by_chance), log(p / (1 - by_chance))


def _zeros(ones: float, size: int) -> float:
    """Return the share of bits that are not set; at least one counts as not set, and at most all but one."""
    return 1 - min(max(ones, 1.0), size - 1.0) / size


FEWEST = 5
"""The fewest bits that a filter sets before the noise. Every honest one shows eight topics or more, and with
x flips expected, x + 5 - 4√x is above 0 for every x: a filter of zeros never passes."""
FULLEST_BELIEVED = 0.3
"""The largest share of bits that a filter sets before the noise; honest ones stop at a quarter."""
NOISIEST = 0.4
"""Probability of flips beyond which any similarity would be luck, so that a liar could just try."""
SMALLEST = 256
"""Bits of the smallest informative filter."""
_DEVIATIONS = 4.0


def filter_faults(config: TrackerlessConfig) -> list[tuple[str, str]]:
    """Return settings by which a node would show filters that others do not believe, each with the error."""
    found = []
    if config.filter_bits % 8:
        found.append(
            ("filter_bits", f"{config.filter_bits} is wrong; a filter has whole bytes, of 8 bits each")
        )
    if flip_probability(round(config.epsilon * 1000), config.filter_hashes) > NOISIEST:
        told = f"{config.epsilon} is too little for filter_hashes = {config.filter_hashes}"
        found.append(
            ("epsilon", f"{told}: nobody believes a filter of so much noise; take 0.41 for each or more")
        )
    most = most_topics(config.filter_bits, config.filter_hashes)
    if config.least_topics > most:
        told = f"{config.least_topics} is more than the {most} topics"
        found.append(("least_topics", f"{told} that such a filter shows at most; make filter_bits larger"))
    return found


def is_plausible(descriptor: Descriptor) -> bool:
    """Return whether an honest node may show this filter. To show none is honest."""
    return not descriptor.filter or is_credible(read_filter(descriptor))


def is_credible(shown: ShownFilter) -> bool:
    """Return whether a filter that was read is plausible; here there must be one."""
    m, p = shown.size, shown.flip
    if m < SMALLEST or p > NOISIEST:
        return False
    slack = _DEVIATIONS * sqrt(m * p * (1 - p))
    noise = m * p
    least = noise + FEWEST * (1 - 2 * p) - slack
    most = noise + FULLEST_BELIEVED * m * (1 - 2 * p) + slack
    return least <= shown.bits.bit_count() <= most


def is_contradicted(own: Interests, shown: ShownFilter, common: int) -> bool:
    """Return whether an intersection found far fewer common topics than the filter promised.

    That happens to a copy of our own filter. To find more is no offence: topics that were subscribed to since
    the epoch began are in the intersection and not in the filter.
    """
    promised = common_topics(own.bits, own.topics, shown)
    return promised - common > _DEVIATIONS * spread_of_common(own.bits, own.topics, common, shown)
