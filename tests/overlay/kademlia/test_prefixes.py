"""Address prefixes."""

from __future__ import annotations

import pytest

from linnet.overlay.kademlia.prefixes import prefix_of, prefixes


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("tls://192.0.2.7:1", "wss://192.0.2.200:99", True),
        ("tls://192.0.2.7:1", "tls://192.0.3.7:1", False),
        ("tls://[2001:db8:1::1]:1", "tls://[2001:db8:1:ffff::2]:1", True),
        ("tls://[2001:db8:1::1]:1", "tls://[2001:db8:2::1]:1", False),
        ("tls://a.example.org:1", "tls://B.c.EXAMPLE.org:2", True),
        ("tls://a.example.org:1", "tls://a.example.com:1", False),
    ],
)
def test_what_belongs_together(one: str, other: str, same: bool) -> None:
    assert (prefix_of(one) == prefix_of(other)) is same


def test_this_machine_has_none() -> None:
    assert prefixes(("tls://127.0.0.1:1", "tls://localhost:2", "tls://[::1]:3")) == ()


def test_each_counts_once() -> None:
    assert len(prefixes(("tls://192.0.2.7:1", "wss://192.0.2.8:2", "tls://198.51.100.1:1"))) == 2
