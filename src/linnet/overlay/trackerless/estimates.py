"""What a randomised filter says of its owner's topics, without the bias that the noise puts into it.

Each bit b of a filter was flipped with probability p, so b' has the mean p + b(1 - 2p), and
(b' - p) / (1 - 2p) has the mean b and the variance v = p(1 - p) / (1 - 2p)². All estimates are sums of
these. The one-sided ones compare our exact filter A with a randomised one B': their variance is |A|v. The
two-sided ones compare two randomised filters and are far worse, v(|A| + |B|) + mv² at equal p: they are for
those who answer a third node, and have nothing better.

Filters are whole numbers, so that counting common bits takes a fraction of a microsecond.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import exp, log, log1p, sqrt

from msgspec import Struct

from linnet.overlay.trackerless.messages import Descriptor

_STEEPEST = 27.0
"""Largest epsilon per bit that is told from certainty: p stays above 10⁻¹², so that logarithms exist."""


class Shown(Struct, frozen=True, gc=False):
    """A randomised filter as it was read from a descriptor."""

    epoch: int
    bits: int
    size: int
    hashes: int
    flip: float
    """The probability that a bit was flipped; below one half."""
    ones: float
    """How many bits were set before, by estimate; between 1 and `size`, 0 if there is no filter."""


@lru_cache(maxsize=1024)
def flip_probability(epsilon_milli: int, hashes: int) -> float:
    """p = 1 / (1 + e^(ε/k)): one topic changes k bits, and each tells ε/k at most."""
    return 1 / (1 + exp(min(epsilon_milli / 1000 / hashes, _STEEPEST)))


@lru_cache(maxsize=4096)
def read(descriptor: Descriptor) -> Shown:
    """The filter of a descriptor; without one, or with one of pure noise, nothing is shown.

    It is read to check it, and again to compare it, so the last ones are remembered.
    """
    size = len(descriptor.filter) * 8
    if not size or not descriptor.epsilon_milli:
        return Shown(descriptor.epoch, 0, 0, descriptor.hashes, 0.0, 0.0)
    bits = int.from_bytes(descriptor.filter, "little")
    flip = flip_probability(descriptor.epsilon_milli, descriptor.hashes)
    ones = min(max(size_of(bits, size, flip), 1.0), float(size))
    return Shown(descriptor.epoch, bits, size, descriptor.hashes, flip, ones)


def size_of(noisy: int, size: int, flip: float) -> float:
    """|B|: bits that were set before the noise; unbiased, so it may be below 0."""
    return (noisy.bit_count() - size * flip) / (1 - 2 * flip)


def one_sided(own: int, noisy: int, flip: float) -> float:
    """S₁: bits common to our exact filter and another's; unbiased, variance |A|v."""
    return ((own & noisy).bit_count() - flip * own.bit_count()) / (1 - 2 * flip)


def two_sided(one: Shown, other: Shown) -> float:
    """S₂: bits common to two filters of which only randomised copies are known; unbiased."""
    p, q = one.flip, other.flip
    both = (one.bits & other.bits).bit_count()
    mixed = q * one.bits.bit_count() + p * other.bits.bit_count()
    return (both - mixed + one.size * p * q) / ((1 - 2 * p) * (1 - 2 * q))


def cosine(own: int, shown: Shown) -> float:
    """How alike our topics and another's are: S₁ / √(|A||B|), within 0 and 1."""
    ours = own.bit_count()
    if not ours or not shown.size:
        return 0.0
    return min(max(one_sided(own, shown.bits, shown.flip) / sqrt(ours * shown.ones), 0.0), 1.0)


def topics_of(ones: float, size: int, hashes: int) -> float:
    """Topics that set so many bits: -(m/k) ln(1 - |B|/m). Of a full filter, as of one with a bit left."""
    return -size / hashes * log1p(-min(max(ones, 0.0), size - 1.0) / size)


def common_topics(own: int, topics: int, shown: Shown) -> float:
    """t: topics that we and another have in common; nearly unbiased, so it may be below 0.

    The zeros of the union of both filters say how many topics the two have together; what our own number
    and the other's make more than that, they have in common.
    """
    union = own.bit_count() + shown.ones - one_sided(own, shown.bits, shown.flip)
    together = log(_zeros(union, shown.size)) / (shown.hashes * log1p(-1 / shown.size))
    return topics + topics_of(shown.ones, shown.size, shown.hashes) - together


def spread_of_common(own: int, topics: int, common: float, shown: Shown) -> float:
    """The standard deviation of `common_topics` if so many are common.

    The noise of a bit inside A counts 1/z(B), of one outside 1/z(B) - 1/z(A or B), with z the
    share of zeros; and each pair of topics that is not all in B may share a bit by chance.
    """
    m, k, p = shown.size, shown.hashes, shown.flip
    v = p * (1 - p) / (1 - 2 * p) ** 2
    theirs = topics_of(shown.ones, m, k)
    together = max(topics + theirs - max(common, 0.0), theirs)
    alone, both = _zeros(shown.ones, m), exp(-k * together / m)
    ours = own.bit_count()
    noise = v * (ours / alone**2 + (m - ours) * (1 / alone - 1 / both) ** 2) / k**2
    return sqrt(noise + (together**2 - theirs**2) / (2 * m))


def likelihood(shown: Shown, positions: Iterable[int]) -> float:
    """The logarithm of how much likelier the filter is if a tag with these bits is in it than if not.

    It guides a search for the members of a topic, and it is just what a curious one would compute.
    """
    if not shown.size:
        return 0.0
    hit, miss = _evidence(shown.flip, shown.ones / shown.size)
    bits = shown.bits
    return sum([hit if bits >> position & 1 else miss for position in positions])


def evidence(shown: Shown) -> float:
    """What one bit that is set says for a tag with it; never less than nothing."""
    return _evidence(shown.flip, shown.ones / shown.size)[0] if shown.size else 0.0


@lru_cache(maxsize=4096)
def _evidence(p: float, fill: float) -> tuple[float, float]:
    """What a bit says for a tag if it is set, and what if it is not."""
    by_chance = fill * (1 - p) + (1 - fill) * p
    return log((1 - p) / by_chance), log(p / (1 - by_chance))


def _zeros(ones: float, size: int) -> float:
    """The share of bits that are not set; at least one is taken to be left, and at most all but one."""
    return 1 - min(max(ones, 1.0), size - 1.0) / size
