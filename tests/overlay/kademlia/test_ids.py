"""Ids and how far they are apart."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.ids import PeerId
from linnet.overlay.kademlia.ids import (
    BITS,
    NodeId,
    bucket_index,
    distance,
    id_in_bucket,
    node_id,
    record_key,
)

ids = st.binary(min_size=32, max_size=32).map(NodeId)


@given(ids, ids, ids)
def test_it_is_a_metric_and_of_each_distance_there_is_one(one: NodeId, other: NodeId, third: NodeId) -> None:
    assert (distance(one, other) == 0) == (one == other)
    assert distance(one, other) == distance(other, one)
    assert distance(one, third) <= distance(one, other) + distance(other, third)
    assert (distance(one, other) == distance(one, third)) == (other == third)


@given(ids, st.integers(0, BITS - 1), st.integers(0, 2**32))
def test_an_id_of_a_bucket_is_in_it(own: NodeId, index: int, seed: int) -> None:
    assert bucket_index(own, id_in_bucket(own, index, Random(seed))) == index


def test_nobody_is_in_a_bucket_of_its_own() -> None:
    own = node_id(PeerId(b"a" * 32))
    with pytest.raises(ValueError, match="its own"):
        bucket_index(own, own)


def test_ids_follow_from_keys_and_do_not_change() -> None:
    """Changing this would make nodes and records unfindable for each other."""
    assert node_id(PeerId(b"a" * 32)).hex()[:16] == "5afe5e9d698ce95a"
    assert record_key(b"names", b"a" * 32).hex()[:16] == "2abe94da5c05dd80"
    assert record_key(b"na", b"mes") != record_key(b"nam", b"es")
    assert record_key(b"", b"a" * 32) != node_id(PeerId(b"a" * 32))
