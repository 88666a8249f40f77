"""Where attributes and nodes lie."""

from __future__ import annotations

from linnet.content.keys import attribute_key, distance, nearest_name, position
from linnet.core.ids import PeerId

ONE, OTHER = PeerId(b"1" * 32), PeerId(b"2" * 32)


def test_one_key_function_is_used_for_routing_and_for_choosing() -> None:
    names = ("price", "stock", "apple")
    nearest = nearest_name(ONE, names)
    assert nearest == min(names, key=lambda name: distance(ONE, attribute_key(name)))
    assert nearest_name(ONE, reversed(names)) == nearest


def test_a_distance_is_the_exclusive_or_of_positions_of_256_bits() -> None:
    assert distance(ONE, position(ONE)) == 0
    assert distance(ONE, position(OTHER)) == distance(OTHER, position(ONE)) > 0
    assert len(position(ONE)) == len(attribute_key("ü")) == 32
    assert attribute_key("a") != attribute_key("b")
