"""Where attributes, their parts and nodes lie."""

from __future__ import annotations

from hashlib import sha256

import pytest

from linnet.content.attribute_keys import (
    MOST_PARTS,
    attribute_key,
    base_of,
    check_part,
    distance,
    is_part,
    nearest_name,
    part_name,
    part_of,
    position,
)
from linnet.core.errors import RemoteError
from linnet.core.ids import EventId, PeerId
from linnet.overlay.kademlia.routing_table import NodeId

ONE, OTHER = PeerId(b"1" * 32), PeerId(b"2" * 32)


def test_one_key_function_is_used_for_routing_and_for_choosing() -> None:
    names = ("price", "stock", "apple")
    nearest = nearest_name(ONE, names)
    assert nearest == min(names, key=lambda name: distance(ONE, attribute_key(name)))
    assert nearest_name(ONE, reversed(names)) == nearest


def test_a_distance_is_the_exclusive_or_of_positions_of_256_bits() -> None:
    assert position(ONE) == sha256(b"linnet/kademlia node/1" + ONE).digest()
    assert attribute_key("ü") == sha256(b"linnet/kademlia key/1" + b"\x07content" + "ü".encode()).digest()
    assert distance(ONE, position(ONE)) == 0
    assert distance(ONE, position(OTHER)) == distance(OTHER, position(ONE)) > 0
    turned = NodeId(bytes(byte ^ 0x5A for byte in position(ONE)))
    assert distance(ONE, turned) == int.from_bytes(b"\x5a" * 32, "big")
    assert attribute_key("a") != attribute_key("b")


def test_the_first_part_has_the_name_of_the_attribute_and_no_part_that_of_another() -> None:
    names = [part_name("price", part) for part in range(MOST_PARTS)]
    assert names[:3] == ["price", "price/1", "price/2"]
    assert [is_part(name) for name in names] == [False] + [True] * 15
    assert {base_of(name) for name in names} == {"price"}
    for name in names:
        check_part(name)


@pytest.mark.parametrize(
    "name", ["price/", "price/0", "price/01", "price/16", "price/-1", "price/1/1", "price/x"]
)
def test_what_cannot_be_a_part_is_refused(name: str) -> None:
    with pytest.raises(RemoteError):
        check_part(name)


def test_events_are_spread_evenly_by_their_ids() -> None:
    counts = [0] * 4
    for number in range(256):
        counts[part_of(EventId(bytes([7, 7, 7, number]) * 8), 4)] += 1
    assert counts == [64] * 4
