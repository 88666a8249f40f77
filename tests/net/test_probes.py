"""What a node dials for a peer that wants to know whether it can be reached: nothing to scan with."""

from __future__ import annotations

import pytest

from linnet.core.ids import PeerId
from linnet.net.admission import Networks
from linnet.net.probes import Probes

ANN = PeerId(b"a" * 32)
PUBLIC, PRIVATE, LOCAL = "203.0.115.7:4001", "192.168.1.5:4001", "127.0.0.1:4001"


@pytest.mark.parametrize(
    ("origin", "place", "may"),
    [
        (PUBLIC, "tls://203.0.115.7:22", True),
        (PUBLIC, "wss://203.0.115.7:443", True),
        (PUBLIC, "tls://127.0.0.1:22", False),
        (PUBLIC, "tls://[::1]:22", False),
        (PUBLIC, "tls://[::ffff:127.0.0.1]:22", False),
        (PUBLIC, "tls://10.0.0.1:22", False),
        (PUBLIC, "tls://192.168.1.5:22", False),
        (PUBLIC, "tls://100.64.0.1:22", False),
        (PUBLIC, "tls://169.254.169.254:80", False),
        (PUBLIC, "tls://0.0.0.0:22", False),
        (PUBLIC, "tls://[fe80::1]:22", False),
        (PUBLIC, "tls://[fd00::1]:22", False),
        (PUBLIC, "tls://224.0.0.1:22", False),
        (PUBLIC, "tls://[ff0e::1]:22", False),
        (PRIVATE, "tls://192.168.1.5:4001", True),
        (PRIVATE, "tls://10.0.0.1:4001", True),
        (PRIVATE, "tls://127.0.0.1:22", False),
        (PRIVATE, "tls://169.254.169.254:80", False),
        (PRIVATE, "tls://198.51.101.1:4001", True),
        ("100.64.0.7:4001", "tls://100.127.9.9:4001", True),
        ("100.64.0.7:4001", "tls://192.168.1.5:22", False),
        (PRIVATE, "tls://100.64.0.1:22", False),
        (LOCAL, "tls://127.0.0.1:4001", True),
        (LOCAL, "tls://192.168.1.5:4001", True),
        ("[2600:db8::5]:1", "tls://[2600:db8::5]:4001", True),
        ("[2600:db8::5]:1", "tls://203.0.115.7:4001", True),
        (None, "pipe://ann:1", True),
        (PUBLIC, "pipe://ann:1", True),
    ],
)
def test_only_addresses_that_a_peer_may_have_are_tried(origin: str | None, place: str, may: bool) -> None:
    assert Probes(Networks(())).may_try(ANN, origin, place, 0.0) is may


def test_addresses_that_it_does_not_come_from_are_few_for_a_network() -> None:
    probes = Probes(Networks(()))
    tried = [
        probes.may_try(ANN, f"203.0.115.{number}:1", f"tls://198.51.101.{number}:22", 0.0)
        for number in range(20)
    ]
    assert tried == [True] * 8 + [False] * 12
    assert probes.may_try(ANN, "203.0.115.1:1", "tls://203.0.115.1:4001", 0.0), (
        "its own address is always tried"
    )
    assert probes.may_try(ANN, "203.0.116.1:1", "tls://198.51.101.1:4001", 0.0), (
        "other networks have their own"
    )
    assert probes.may_try(ANN, "203.0.115.1:1", "tls://198.51.101.1:22", 3600.0)


def test_each_peer_of_a_shared_network_has_attempts_of_its_own() -> None:
    """Behind a proxy all come from one address: the ninth was told that it is unreachable."""
    probes = Probes(Networks(("172.17.0.1/32",)))
    peers = [PeerId(bytes([number]) * 32) for number in range(20)]
    places = [f"tls://198.51.101.{number}:4001" for number in range(20)]
    assert all(map(probes.may_try, peers, ["172.17.0.1:1"] * 20, places, [0.0] * 20))
    tried = [probes.may_try(ANN, "172.17.0.1:1", place, 0.0) for place in places]
    assert tried == [True] * 8 + [False] * 12
