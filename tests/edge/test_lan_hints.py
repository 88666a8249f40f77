"""Hints of local networks: made of an announcement, read by the driver."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.edge.announcement import is_lan_hint, key_of, key_text, lan_hint

KEY = bytes(range(32))


def test_a_hint_names_key_and_place() -> None:
    assert lan_hint(KEY, "192.168.1.5", 4711) == f"lan://{key_text(KEY)}@192.168.1.5:4711"
    assert lan_hint(KEY, "fe80::1%eth0", 4711) == f"lan://{key_text(KEY)}@[fe80::1%eth0]:4711"


def test_the_longest_fits_a_contact() -> None:
    address = "fe80:1111:2222:3333:4444:5555:6666:7777%fifteen-letters"
    assert len(lan_hint(KEY, address, 65_535)) <= 128


@given(st.binary(min_size=32, max_size=32))
def test_keys_come_back(key: bytes) -> None:
    assert key_of(key_text(key)) == key


@pytest.mark.parametrize("text", ["", "abc", key_text(KEY)[:-1], key_text(KEY) + "A", "é" * 43, "=" * 43])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no key"):
        key_of(text)


def test_other_hints_are_told_apart() -> None:
    assert is_lan_hint(lan_hint(KEY, "10.0.0.1", 1))
    assert not is_lan_hint("tls://10.0.0.1:1")
