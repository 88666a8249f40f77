"""Filters: where bits stand, how they are flipped, and what one release tells."""

from __future__ import annotations

import math
from collections import Counter
from hashlib import sha256
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import Refused
from linnet.core.ids import TopicId
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.profile_filter import (
    FULLEST,
    bit_positions,
    bits_of,
    flip_probability,
    make_interests,
    make_release,
    most_topics,
)
from linnet.overlay.gossip.topic_tags import tag_in, topic_keys

CONFIG = TrackerlessConfig()
KEY = bytes(32)


def tag(number: int | str) -> bytes:
    return sha256(f"tag {number}".encode()).digest()


def tags(count: int, start: int = 0) -> list[bytes]:
    return [tag(start + n) for n in range(count)]


def key(number: int) -> bytes:
    return sha256(f"key {number}".encode()).digest()


def bits(filter: bytes) -> int:
    return int.from_bytes(filter, "little")


def with_(**changes: object) -> TrackerlessConfig:
    return msgspec.structs.replace(CONFIG, **changes)


@given(st.binary(min_size=32, max_size=32), st.integers(0, 2**40), st.integers(1, 16))
def test_positions_are_within_the_filter_and_change_with_the_epoch(tag: bytes, epoch: int, k: int) -> None:
    found = bit_positions(tag, epoch, 8192, k)
    assert len(found) == k
    assert all(0 <= position < 8192 for position in found)
    assert found == bit_positions(tag, epoch, 8192, 16)[:k]
    assert bit_positions(tag, epoch, 8192, 16) != bit_positions(tag, epoch + 1, 8192, 16)
    assert {position for n in range(16) for position in bit_positions(tag, epoch + n, 8, 16)} == {*range(8)}


@pytest.mark.parametrize(("topics", "hashes"), [(40, 1), (100, 4), (100, 7)])
def test_the_rate_of_false_positives_is_within_a_tenth_of_theory(topics: int, hashes: int) -> None:
    size, false, tried = 512, 0, 0
    for epoch in range(40):
        own = bits_of(tags(topics, epoch * 10_000), epoch, size, hashes)
        for other in tags(500, epoch * 10_000 + topics):
            false += all(own >> position & 1 for position in bit_positions(other, epoch, size, hashes))
            tried += 1
    expected = (1 - (1 - 1 / size) ** (hashes * topics)) ** hashes
    assert false / tried == pytest.approx(expected, rel=0.1)


def test_every_tag_is_found_in_its_own_filter() -> None:
    own = bits_of(tags(100), 3, 1024, 4)
    assert all(own >> position & 1 for one in tags(100) for position in bit_positions(one, 3, 1024, 4))


@pytest.mark.parametrize(("epsilon", "hashes"), [(1.0, 1), (3.0, 1), (5.0, 4)])
def test_bits_are_flipped_with_just_the_probability_of_the_epsilon(epsilon: float, hashes: int) -> None:
    config = with_(epsilon=epsilon, filter_hashes=hashes)
    exact, flipped, drawn = bits_of(tags(30), 1, 1024, hashes), 0, 400
    for n in range(drawn):
        flipped += (bits(make_release(tags(30), 1, key(n), config).filter) ^ exact).bit_count()
    p = 1 / (1 + math.exp(epsilon / hashes))
    assert flip_probability(round(epsilon * 1000), hashes) == pytest.approx(p, rel=1e-12)
    deviation = math.sqrt(drawn * 1024 * p * (1 - p))
    assert abs(flipped - drawn * 1024 * p) < 3.5 * deviation


def test_no_pattern_is_more_than_e_to_the_epsilon_likelier_with_one_topic_more() -> None:
    config = with_(epsilon=1.0, filter_bits=8, least_topics=0)
    without = [one for one in tags(200) if bit_positions(one, 0, 8, 1) != bit_positions(tag("x"), 0, 8, 1)][
        :1
    ]
    draws = 12_000
    seen = [
        Counter(make_release(topics, 0, key(n), config).filter for n in range(draws))
        for topics in (without, [*without, tag("x")])
    ]
    patterns = set(seen[0]) | set(seen[1])
    assert len(patterns) > 200
    for pattern in patterns:
        low, high = sorted(counts[pattern] for counts in seen)
        assert high - math.e * low <= 4.5 * math.sqrt(high + math.e**2 * low + 1)
    at = bit_positions(tag("x"), 0, 8, 1)[0]
    shown = [sum(n for filter, n in counts.items() if bits(filter) >> at & 1) for counts in seen]
    assert shown[1] / shown[0] == pytest.approx(math.e, rel=0.03)


def test_a_release_is_the_same_for_everyone_and_at_any_time() -> None:
    one = make_release(tags(20), 5, KEY, CONFIG)
    assert {make_release(Random(n).sample(tags(20), 20), 5, KEY, CONFIG).filter for n in range(10)} == {
        one.filter
    }
    assert (one.epoch, one.epsilon_milli, one.hashes, len(one.filter)) == (5, 3000, 1, 128)


def test_two_epochs_differ_by_noise_whether_a_topic_was_added_or_not() -> None:
    q = flip_probability(3000, 1) + 20 / 1024 * (1 - 2 * flip_probability(3000, 1))
    apart: list[list[int]] = [[], []]
    for epoch in range(300):
        before = bits(make_release(tags(20), epoch, KEY, CONFIG).filter)
        for at, topics in enumerate((tags(20), tags(21))):
            apart[at].append((before ^ bits(make_release(topics, epoch + 1, KEY, CONFIG).filter)).bit_count())
    same, more = (sum(weights) / len(weights) for weights in apart)
    assert same == pytest.approx(2 * 1024 * q * (1 - q), rel=0.03)
    assert abs(more - same) < 3.0
    assert min(apart[1]) > 80


def test_other_topics_in_the_same_epoch_get_other_noise() -> None:
    """Were it the same, two releases would differ in just the bit of the new topic."""
    before = make_release(tags(20), 1, KEY, CONFIG)
    after = make_release(tags(21), 1, KEY, CONFIG)
    assert (bits(before.filter) ^ bits(after.filter)).bit_count() > 40


def test_networks_and_parameters_get_noise_of_their_own() -> None:
    exact = bits_of(tags(20), 1, 1024, 1)
    noises = {
        bits(make_release(tags(20), 1, KEY, config, network).filter) ^ exact
        for config, network in ((CONFIG, b""), (CONFIG, b"home"), (with_(epsilon=3.001), b""))
    }
    assert len(noises) == 3
    assert all(bin(one & other).count("1") < 20 for one in noises for other in noises if one != other)


@pytest.mark.parametrize("topics", [0, 1, 7, 8])
def test_few_topics_look_like_eight(topics: int) -> None:
    config = with_(epsilon=1000.0)
    sizes = Counter(
        bits(make_release(tags(topics), 1, key(n), config).filter).bit_count() for n in range(200)
    )
    assert set(sizes) <= {6, 7, 8}
    assert sizes[8] > 150


def test_dummies_change_with_the_epoch_and_the_topics_stay() -> None:
    config = with_(epsilon=1000.0)
    one, other = (bits(make_release(tags(3), 1, key(n), config).filter) for n in range(2))
    assert one & other & bits_of(tags(3), 1, 1024, 1) == bits_of(tags(3), 1, 1024, 1)
    assert one != other


def test_of_too_many_topics_some_are_shown() -> None:
    config = with_(epsilon=1000.0)
    most = most_topics(1024, 1)
    assert most == 294
    shown = bits(make_release(tags(2000), 1, KEY, config).filter)
    assert shown.bit_count() <= most
    assert shown.bit_count() / 1024 == pytest.approx(FULLEST, abs=0.03)
    assert shown & ~bits_of(tags(2000), 1, 1024, 1) == 0
    assert shown != bits(make_release(tags(2000), 1, key(1), config).filter)


def test_nothing_enters_a_filter_but_what_is_given() -> None:
    """So whoever gives only the topics that are switched on for a network shows no other."""
    topics = [topic_keys(TopicId(tag(n))) for n in range(4)]
    shown = [tag_in(keys, 1) for keys in topics[:2]]
    clear = with_(epsilon=1000.0, least_topics=0)
    assert bits(make_release(shown, 1, KEY, clear, b"home").filter) == bits_of(shown, 1, 1024, 1)
    assert bits(make_release([], 1, KEY, clear, b"home").filter) == 0


def test_interests_are_exact_and_do_not_show_themselves() -> None:
    topics = [topic_keys(TopicId(tag(n))) for n in range(5)]
    own = make_interests(topics, 9, CONFIG)
    assert (own.epoch, own.topics, own.size, own.hashes) == (9, 5, 1024, 1)
    assert own.bits == bits_of([tag_in(keys, 9) for keys in topics], 9, 1024, 1)
    assert str(own.bits) not in repr(own)


def test_no_topic_and_no_key_is_in_a_release() -> None:
    topics = [topic_keys(TopicId(tag(n))) for n in range(20)]
    one = make_release([tag_in(keys, 1) for keys in topics], 1, KEY, CONFIG)
    told = msgspec.msgpack.encode(one)
    for keys in topics:
        for secret in (keys.topic, keys.tag, keys.ring, tag_in(keys, 1)):
            assert not any(secret[at : at + 4] in told for at in range(29))


@pytest.mark.parametrize(
    "config",
    [with_(filter_bits=1023), with_(filter_bits=16_384), with_(filter_hashes=0), with_(epsilon=0.0)],
)
def test_impossible_filters_are_refused(config: TrackerlessConfig) -> None:
    with pytest.raises(Refused):
        make_release(tags(3), 1, KEY, config)


def test_a_short_key_is_refused() -> None:
    with pytest.raises(Refused):
        make_release(tags(3), 1, b"short", CONFIG)
