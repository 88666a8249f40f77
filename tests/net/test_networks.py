"""By which network a peer is counted: its prefix, unless many share that by the operator's word."""

from __future__ import annotations

import pytest

from linnet.core.errors import ConfigError
from linnet.net.admission import Networks


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.7:4001", "203.0.113.0/24"),
        ("203.0.113.200:1", "203.0.113.0/24"),
        ("[2001:db8:1:2::5]:4001", "2001:db8:1::/48"),
        ("[::ffff:203.0.113.7]:4001", "203.0.113.0/24"),
        ("[fe80::1%eth0]:4001", "fe80::/48"),
        ("127.0.0.1:4001", None),
        ("127.9.9.9:4001", None),
        ("[::1]:4001", None),
        ("10.1.2.3:4001", None),
        ("[2001:db8:ffff::1]:4001", None),
        ("a-pipe:1", None),
        (None, None),
    ],
)
def test_an_address_has_one_network(address: str | None, network: str | None) -> None:
    assert Networks(("10.0.0.0/8", "2001:db8:ffff::/48")).of(address) == network


def test_a_shared_prefix_that_is_longer_than_a_network_exempts_all_of_it() -> None:
    assert Networks(("203.0.113.0/28",)).of("203.0.113.200:1") is None


@pytest.mark.parametrize("prefix", ["10.0.0.1/8", "home", ""])
def test_what_is_no_prefix_is_refused_with_an_example(prefix: str) -> None:
    with pytest.raises(ConfigError, match=r"such as 10\.0\.0\.0/8"):
        Networks((prefix,))
