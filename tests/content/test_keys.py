"""Where attributes and nodes lie."""

from __future__ import annotations

from hashlib import sha256

from linnet.content.attribute_keys import attribute_key, distance, nearest_name, position
from linnet.core.ids import PeerId
from linnet.overlay.kademlia.ids import NodeId

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
