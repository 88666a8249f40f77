"""What a node is called on two networks, or on two days, has nothing in common."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.edge.announcement import DAY, day_of, lan_key, make_announcement, network_id, node_secret
from linnet.identity.keys import SigningKey

DEVICE = SigningKey(b"d" * 32)
SECRET = node_secret(DEVICE)
CAFE, HOME = network_id([b"cafe"]), network_id([b"home"])
FIXED = 5
"""Bytes of an announcement that are the same in all: magic and version."""


def windows(data: bytes, size: int) -> set[bytes]:
    return {data[place : place + size] for place in range(len(data) - size + 1)}


def test_keys_can_be_had_again() -> None:
    assert lan_key(SECRET, CAFE, 7).public == lan_key(node_secret(DEVICE), CAFE, 7).public
    assert day_of(7.5 * DAY) == 7


def test_two_networks_or_days_share_no_bytes() -> None:
    said = [
        make_announcement(lan_key(SECRET, CAFE, 7), 4711, b"nonce 1 "),
        make_announcement(lan_key(SECRET, HOME, 7), 4811, b"NONCE-2-"),
        make_announcement(lan_key(SECRET, CAFE, 8), 4911, b"n0nc3_3_"),
    ]
    for place, one in enumerate(said):
        assert not windows(one, 8) & windows(DEVICE.public, 8), "the device key is not in it"
        for other in said[place + 1 :]:
            # Four bytes in a row are equal by chance in one of four hundred thousand such pairs.
            assert not windows(one[FIXED:], 4) & windows(other[FIXED:], 4)


def test_another_device_has_other_keys() -> None:
    other = node_secret(SigningKey(b"e" * 32))
    assert lan_key(other, CAFE, 7).public != lan_key(SECRET, CAFE, 7).public
    assert DEVICE.seed != SECRET


@given(st.lists(st.binary(max_size=6), max_size=4), st.lists(st.binary(max_size=6), max_size=4))
def test_facts_are_told_apart(one: list[bytes], other: list[bytes]) -> None:
    assert (network_id(one) == network_id(other)) == (one == other)
