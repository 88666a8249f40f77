"""Plausible filters: every honest one, none that is everybody's twin or opposite."""

from __future__ import annotations

from hashlib import sha256
from random import Random

import msgspec
import pytest

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.descriptor import believing
from linnet.overlay.gossip.messages import Descriptor
from linnet.overlay.gossip.profile_filter import (
    Interests,
    bits_of,
    filter_faults,
    is_contradicted,
    is_plausible,
    make_release,
    read_filter,
)


def tags(count: int, start: int = 0) -> list[bytes]:
    return [sha256(f"tag {start + n}".encode()).digest() for n in range(count)]


def descriptor(filter: bytes, epsilon_milli: int = 3000, hashes: int = 1) -> Descriptor:
    return Descriptor(PeerId(bytes(32)), 1, 0, filter, epsilon_milli, hashes, (), 0, bytes(64))


def honest(topics: int, seed: int, epsilon: float = 3.0, hashes: int = 1, start: int = 0) -> Descriptor:
    config = TrackerlessConfig(epsilon=epsilon, filter_hashes=hashes)
    one = make_release(tags(topics, start), 0, sha256(f"key {seed}".encode()).digest(), config)
    return descriptor(one.filter, one.epsilon_milli, hashes)


@pytest.mark.parametrize("topics", [0, 1, 8, 40, 1000])
@pytest.mark.parametrize(("epsilon", "hashes"), [(1.0, 1), (3.0, 1), (8.0, 1), (3.0, 4), (1000.0, 1)])
def test_honest_filters_are_plausible(topics: int, epsilon: float, hashes: int) -> None:
    assert all(is_plausible(honest(topics, seed, epsilon, hashes)) for seed in range(15))


@pytest.mark.parametrize("epsilon_milli", [1000, 3000, 4000, 5500, 8000, 20_000, 1_000_000])
@pytest.mark.parametrize("filter", [one * n for one in (b"\xff", b"\x00") for n in (8, 32, 128, 1024)])
def test_all_ones_and_all_zeros_are_not(filter: bytes, epsilon_milli: int) -> None:
    assert not is_plausible(descriptor(filter, epsilon_milli))


def test_half_full_is_too_full() -> None:
    assert not is_plausible(descriptor(b"\x55" * 128))


@pytest.mark.parametrize("epsilon_milli", [0, 1, 100, 400])
def test_pure_noise_is_not_plausible_though_it_has_as_many_ones_as_it_should(
    epsilon_milli: int,
) -> None:
    noise = Random(1).randbytes(128)
    assert not is_plausible(descriptor(noise, epsilon_milli))


def test_to_show_nothing_is_honest() -> None:
    assert is_plausible(descriptor(b""))


def test_a_check_of_descriptors_refuses_them_after_the_signature() -> None:
    def signed(descriptor: Descriptor, now: float) -> None:
        if descriptor.version == 0:
            raise RemoteError(Reason.BAD_SIGNATURE)

    check = believing(signed)
    check(honest(20, seed=1), 0.0)
    with pytest.raises(RemoteError) as refused:
        check(descriptor(b"\xff" * 128), 0.0)
    assert refused.value.reason is Reason.IMPLAUSIBLE_FILTER
    with pytest.raises(RemoteError) as refused:
        check(msgspec.structs.replace(descriptor(b"\xff" * 128), version=0), 0.0)
    assert refused.value.reason is Reason.BAD_SIGNATURE


def own(topics: int) -> Interests:
    return Interests(0, bits_of(tags(topics), 0, 1024, 1), topics, 1024, 1)


def test_a_copy_of_our_filter_is_contradicted_by_an_intersection() -> None:
    copied = read_filter(honest(40, seed=1))
    assert is_contradicted(own(40), copied, common=0)
    assert is_contradicted(own(40), copied, common=20)


@pytest.mark.parametrize("common", [0, 3, 20, 40])
def test_honest_filters_are_not_contradicted(common: int) -> None:
    for seed in range(150):
        theirs = read_filter(honest(40, seed, start=40 - common))
        assert not is_contradicted(own(40), theirs, common)


def test_topics_that_are_new_since_the_filter_are_no_contradiction() -> None:
    assert not is_contradicted(own(40), read_filter(honest(40, seed=1, start=1000)), common=30)


def test_settings_by_which_nobody_would_believe_our_filter() -> None:
    assert filter_faults(TrackerlessConfig()) == []
    assert [name for name, _ in filter_faults(TrackerlessConfig(filter_bits=1001))] == ["filter_bits"]
    assert filter_faults(TrackerlessConfig(epsilon=3.0, filter_hashes=8)) == [
        (
            "epsilon",
            "3.0 is too little for filter_hashes = 8: nobody believes a filter of so much noise; "
            "take 0.41 for each or more",
        )
    ]
    assert not is_plausible(honest(8, 1, epsilon=3.0, hashes=8))
    assert filter_faults(TrackerlessConfig(epsilon=3.28, filter_hashes=8)) == []
    small = TrackerlessConfig(filter_bits=256, filter_hashes=8, epsilon=8.0, least_topics=10)
    assert filter_faults(small) == [
        (
            "least_topics",
            "10 is more than the 9 topics that such a filter shows at most; make filter_bits larger",
        )
    ]
