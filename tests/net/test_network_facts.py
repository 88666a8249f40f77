"""What tells one network from another, read from files as Linux has them."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from linnet.net.interfaces import Interface, NetworkFacts, prefixes

HEAD = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
ROUTES = HEAD + (
    "wlan0 00000000 0101A8C0 0003 0 0 600 00000000 0 0 0\n"
    "wlan0 0001A8C0 00000000 0001 0 0 600 00FFFFFF 0 0 0\n"
)
ARP_HEAD = "IP address       HW type     Flags       HW address            Mask     Device\n"
ARP = ARP_HEAD + "192.168.1.1      0x1         0x2         aa:bb:cc:dd:ee:ff     *        wlan0\n"
SILENT = ARP_HEAD + "192.168.1.1      0x1         0x0         00:00:00:00:00:00     *        wlan0\n"


def interface(*addresses: str) -> Interface:
    return Interface("wlan0", 3, 0, tuple(ipaddress.ip_interface(each) for each in addresses))


HOME = interface("192.168.1.7/24", "fe80::7/64")


def write(proc: Path, routes: str, arp: str) -> None:
    (proc / "route").write_text(routes)
    (proc / "arp").write_text(arp)


def test_gateway_and_prefix_tell_a_network(tmp_path: Path) -> None:
    write(tmp_path, ROUTES, ARP)
    surroundings = NetworkFacts(tmp_path)
    assert surroundings.of(HOME) == (bytes.fromhex("aabbccddeeff"), b"192.168.1.0/24")
    assert surroundings.name(HOME) == "wlan0 192.168.1.0/24 via 192.168.1.1"


def test_two_homes_with_the_same_prefix_are_two(tmp_path: Path) -> None:
    write(tmp_path, ROUTES, ARP)
    one = NetworkFacts(tmp_path).of(HOME)
    write(tmp_path, ROUTES, ARP.replace("aa:bb", "11:22"))
    assert NetworkFacts(tmp_path).of(HOME) != one


def test_a_router_that_goes_off_makes_no_other_network(tmp_path: Path) -> None:
    write(tmp_path, ROUTES, ARP)
    surroundings = NetworkFacts(tmp_path)
    before = surroundings.of(HOME)
    write(tmp_path, ROUTES, SILENT)
    assert surroundings.of(HOME) == before
    assert NetworkFacts(tmp_path).of(HOME) == (b"", b"192.168.1.0/24"), "one that never saw it"


def test_without_a_gateway_or_without_these_files_the_prefix_has_to_do(tmp_path: Path) -> None:
    assert NetworkFacts(tmp_path / "nothing").of(HOME) == (b"", b"192.168.1.0/24")
    write(tmp_path, HEAD, ARP_HEAD)
    assert NetworkFacts(tmp_path).of(HOME) == (b"", b"192.168.1.0/24")
    assert NetworkFacts(tmp_path).name(HOME) == "wlan0 192.168.1.0/24"


def test_routes_of_other_interfaces_and_odd_lines_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path, HEAD + "eth0 00000000 0101A8C0 0003 0 0 0 0 0 0 0\nodd\n", ARP_HEAD + "odd\n")
    assert NetworkFacts(tmp_path).of(HOME) == (b"", b"192.168.1.0/24")


def test_prefixes_of_the_newer_kind_count_where_there_are_no_others() -> None:
    six = interface("2001:db8::5/64", "fe80::5/64")
    assert [str(each) for each in prefixes(six)] == ["2001:db8::/64"]
    assert [str(each) for each in prefixes(interface("fe80::5/64"))] == ["fe80::/64"]
    assert prefixes(interface()) == []
