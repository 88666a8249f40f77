"""The interfaces of this machine: what is known of every one of them."""

from __future__ import annotations

import ipaddress
import socket

from linnet.net.interfaces import LOOPBACK, MULTICAST, POINT_TO_POINT, UP, Interface, interfaces


def test_the_loopback_is_there_with_its_address() -> None:
    found = {each.name: each for each in interfaces()}
    loopback = next(each for each in found.values() if each.flags & LOOPBACK)
    assert ipaddress.ip_interface("127.0.0.1/8") in loopback.addresses
    assert not loopback.is_local_network
    assert loopback.index == socket.if_nametoindex(loopback.name)


def test_every_interface_of_the_system_is_told_once() -> None:
    names = [each.name for each in interfaces()]
    assert len(names) == len(set(names))
    assert set(names) <= {name for _, name in socket.if_nameindex()}


def test_addresses_are_told_by_version() -> None:
    four, six = ipaddress.ip_interface("10.0.0.1/8"), ipaddress.ip_interface("fe80::1/64")
    interface = Interface("x", 1, UP | MULTICAST, (four, six))
    assert interface.of(4) == (four,)
    assert interface.of(6) == (six,)


def test_what_leads_to_other_machines() -> None:
    for flags, leads in (
        (UP | MULTICAST, True),
        (UP, False),
        (MULTICAST, False),
        (UP | MULTICAST | LOOPBACK, False),
        (UP | MULTICAST | POINT_TO_POINT, False),
    ):
        assert Interface("x", 1, flags, ()).is_local_network is leads
