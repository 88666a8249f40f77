"""Estimates: without bias, with the spread that the formulas say, and what can be inferred from a filter."""

from __future__ import annotations

import math
from hashlib import sha256
from random import Random
from statistics import fmean, stdev

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.ids import PeerId
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.messages import Descriptor
from linnet.overlay.gossip.profile_filter import (
    ShownFilter,
    bit_positions,
    bits_of,
    common_topics,
    cosine,
    evidence,
    flip_probability,
    likelihood,
    make_release,
    one_sided,
    read_filter,
    size_of,
    spread_of_common,
    topics_of,
    two_sided,
)

DRAWS = 4000


def tags(count: int, start: int = 0) -> list[bytes]:
    return [sha256(f"tag {start + n}".encode()).digest() for n in range(count)]


def key(number: int) -> bytes:
    return sha256(f"key {number}".encode()).digest()


def shown(topics: list[bytes], seed: int, epsilon: float, hashes: int, epoch: int = 0) -> ShownFilter:
    config = TrackerlessConfig(epsilon=epsilon, filter_hashes=hashes)
    one = make_release(topics, epoch, key(seed), config)
    return read_filter(descriptor(one.filter, one.epsilon_milli, hashes, epoch))


def blurred(exact: int, seed: int, epsilon: float, hashes: int) -> ShownFilter:
    """The filter `exact` with noise: that of a release of nothing."""
    config = TrackerlessConfig(epsilon=epsilon, filter_hashes=hashes, least_topics=0)
    noise = int.from_bytes(make_release([], 0, key(seed), config).filter, "little")
    return read_filter(descriptor((exact ^ noise).to_bytes(128, "little"), round(epsilon * 1000), hashes))


def descriptor(filter: bytes, epsilon_milli: int = 3000, hashes: int = 1, epoch: int = 0) -> Descriptor:
    return Descriptor(PeerId(bytes(32)), 1, epoch, filter, epsilon_milli, hashes, (), 0, bytes(64))


@pytest.mark.parametrize(
    ("epsilon", "hashes", "p"),
    [(1, 1, 0.269), (3, 1, 0.047), (5, 1, 0.0067), (2, 2, 0.269), (3, 4, 0.321), (5, 7, 0.329)],
)
def test_flip_probability(epsilon: int, hashes: int, p: float) -> None:
    assert flip_probability(epsilon * 1000, hashes) == pytest.approx(p, abs=0.0005)


@pytest.mark.parametrize(("epsilon", "hashes"), [(3.0, 1), (5.0, 4)])
def test_common_bits_have_the_mean_and_spread_of_the_formulas(epsilon: float, hashes: int) -> None:
    ours, theirs = tags(50), tags(50, start=30)
    a, b = (bits_of(topics, 0, 1024, hashes) for topics in (ours, theirs))
    both, p = (a & b).bit_count(), flip_probability(round(epsilon * 1000), hashes)
    v = p * (1 - p) / (1 - 2 * p) ** 2
    drawn = [blurred(b, n, epsilon, hashes) for n in range(DRAWS)]
    single = [one_sided(a, one.bits, one.flip) for one in drawn]
    assert fmean(single) == pytest.approx(both, rel=0.01)
    assert stdev(single) == pytest.approx(math.sqrt(a.bit_count() * v), rel=0.03)
    double = [two_sided(blurred(a, -1 - n, epsilon, hashes), one) for n, one in enumerate(drawn)]
    spread = math.sqrt(v * (a.bit_count() + b.bit_count()) + 1024 * v * v)
    # A sample of 4000 strays by spread / 63; the mean of the two-sided form by a hundredth at most there.
    assert abs(fmean(double) - both) < max(0.01 * both, 2.5 * spread / math.sqrt(DRAWS))
    assert stdev(double) == pytest.approx(spread, rel=0.03)
    sizes = [size_of(one.bits, 1024, one.flip) for one in drawn]
    assert fmean(sizes) == pytest.approx(b.bit_count(), rel=0.01)
    assert stdev(sizes) == pytest.approx(math.sqrt(1024 * v), rel=0.03)


def test_the_one_sided_form_is_far_sharper() -> None:
    """50 topics, 4 hashes: standard deviations of 10 against 23 at epsilon 5."""
    a, b = (bits_of(tags(50, start), 0, 1024, 4) for start in (0, 1000))
    single, double = [], []
    for n in range(500):
        theirs = blurred(b, n, 5.0, 4)
        single.append(one_sided(a, theirs.bits, theirs.flip))
        double.append(two_sided(blurred(a, -1 - n, 5.0, 4), theirs))
    assert stdev(single) == pytest.approx(10.1, rel=0.1)
    assert stdev(double) == pytest.approx(23.0, rel=0.1)


@pytest.mark.parametrize(("common", "mean"), [(0, 0.0), (5, 5.0), (15, 15.0)])
def test_common_topics_are_estimated_without_bias(common: int, mean: float) -> None:
    """40 topics each, 1024 bits, one hash, epsilon 3: a standard deviation of 2.1."""
    found, spreads = [], []
    for n in range(1000):
        ours = tags(40, start=n * 100)
        own = bits_of(ours, 0, 1024, 1)
        theirs = shown(tags(40, start=n * 100 + 40 - common), n, 3.0, 1)
        found.append(common_topics(own, 40, theirs))
        spreads.append(spread_of_common(own, 40, common, theirs))
    assert fmean(found) == pytest.approx(mean, abs=0.2)
    assert stdev(found) == pytest.approx(2.1, abs=0.2)
    assert fmean(spreads) == pytest.approx(stdev(found), rel=0.1)


@given(st.binary(min_size=8, max_size=128), st.integers(0, 1_000_000), st.integers(1, 16), st.integers(0))
def test_no_filter_of_a_stranger_breaks_an_estimate(filter: bytes, milli: int, hashes: int, own: int) -> None:
    theirs = read_filter(descriptor(filter, milli, hashes))
    own &= (1 << len(filter) * 8) - 1
    assert 0.0 <= cosine(own, theirs) <= 1.0
    assert theirs.size == 0 or 1.0 <= theirs.ones <= theirs.size
    assert math.isfinite(likelihood(theirs, range(0, theirs.size, 3)))
    if theirs.size:
        assert math.isfinite(common_topics(own, 10, theirs))
        assert math.isfinite(two_sided(theirs, theirs))
        assert spread_of_common(own, 10, 3, theirs) >= 0.0


def test_sizes_and_topics_are_clamped() -> None:
    assert read_filter(descriptor(bytes(128))).ones == 1.0
    assert read_filter(descriptor(b"\xff" * 128)).ones == 1024.0
    assert topics_of(-3.0, 1024, 1) == 0.0
    assert topics_of(2000.0, 1024, 1) == topics_of(1023.0, 1024, 1)
    assert topics_of(1024 * (1 - math.exp(-0.1)), 1024, 2) == pytest.approx(51.2)


def test_who_shows_nothing_is_like_nobody() -> None:
    for one in (descriptor(b""), descriptor(b"\xff" * 128, epsilon_milli=0)):
        assert read_filter(one).size == 0
        assert cosine(0b1111, read_filter(one)) == 0.0
        assert likelihood(read_filter(one), [1, 2]) == 0.0
        assert evidence(read_filter(one)) == 0.0
    assert cosine(0, read_filter(descriptor(b"\x0f" * 128))) == 0.0


def test_a_bit_that_is_shown_says_what_it_adds_to_the_likelihood() -> None:
    for fill in (b"\x01", b"\x0f"):
        shown = read_filter(descriptor(fill * 128))
        assert evidence(shown) == likelihood(shown, [8]) > 0.0 > likelihood(shown, [7])


def area(positive: list[float], negative: list[float], rng: Random) -> float:
    """The probability that one that is in the filter has the larger likelihood than one that is not."""
    pairs = [(rng.choice(positive), rng.choice(negative)) for _ in range(20_000)]
    return fmean((one > other) + 0.5 * (one == other) for one, other in pairs)


def test_public_topics_can_be_inferred_as_far_as_epsilon_allows_and_secret_ones_not_at_all() -> None:
    """Who can list the topics is right in 94 of 100 comparisons at epsilon 3: noise alone hides little."""
    rng = Random(1)
    expected = {1.0: 0.73, 2.0: 0.87, 3.0: 0.94}
    for epsilon, theory in expected.items():
        inside, outside, secret = [], [], []
        for n in range(40):
            topics = tags(40, start=n * 100)
            filter = shown(topics, n, epsilon, 1)
            inside += [likelihood(filter, bit_positions(tag, 0, 1024, 1)) for tag in topics]
            outside += [likelihood(filter, bit_positions(tag, 0, 1024, 1)) for tag in tags(40, n * 100 + 50)]
            guesses = [sha256(b"a guess" + tag).digest() for tag in topics]
            secret += [likelihood(filter, bit_positions(tag, 0, 1024, 1)) for tag in guesses]
        assert area(inside, outside, rng) == pytest.approx(theory, abs=0.03)
        assert area(secret, outside, rng) == pytest.approx(0.5, abs=0.03)


def community_share(epsilon: float, hashes: int, rng: Random) -> float:
    """The share of the nine likest that are of the own community: 100 nodes in 10 communities, 40 topics."""
    world = tags(1000)
    homes = [rng.sample(world, 80) for _ in range(10)]
    follows = [rng.sample(homes[n % 10], 30) + rng.sample(world, 10) for n in range(100)]
    seen = [shown(topics, n, epsilon, hashes) for n, topics in enumerate(follows)]
    good = 0
    for n in range(100):
        own = bits_of(follows[n], 0, 1024, hashes)
        best = sorted((m for m in range(100) if m != n), key=lambda m: cosine(own, seen[m]), reverse=True)
        good += sum(m % 10 == n % 10 for m in best[:9])
    return good / 900


def test_one_hash_finds_like_peers_best_for_the_same_epsilon() -> None:
    one, four, seven = (community_share(3.0, hashes, Random(7)) for hashes in (1, 4, 7))
    assert one > 0.8
    assert one > four + 0.2
    assert four > seven
    assert community_share(1.0, 1, Random(7)) < one


def test_shown_is_a_plain_value() -> None:
    one = read_filter(descriptor(b"\x01" * 128))
    assert msgspec.structs.replace(one, epoch=1) != one
