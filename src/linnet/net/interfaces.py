"""The network interfaces of this machine and their addresses, by the system's own `getifaddrs`.

Python lists names and numbers of interfaces but not their addresses; the C library does on every Unix.
Without `getifaddrs` no interfaces are seen, and no local networks.

A local network is recognised by its gateway's hardware address, and its prefix. The prefixes alone are the
same in half of all homes; with the gateway's address two networks have nothing in common. It is read from
files of Linux; elsewhere, and where there is no gateway, the prefix has to do. Nothing of this leaves the
machine.
"""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import ipaddress
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

UP, LOOPBACK, POINT_TO_POINT = 0x1, 0x8, 0x10
MULTICAST = 0x1000 if sys.platform.startswith("linux") else 0x8000

_ROUTE_UP, _ROUTE_GATEWAY = 0x1, 0x2
_COMPLETE = 0x2
_NO_ADDRESS = "00:00:00:00:00:00"


InterfaceAddress = ipaddress.IPv4Interface | ipaddress.IPv6Interface


class Interface(Struct, frozen=True):
    """One interface, as it is now."""

    name: str
    index: int
    flags: int
    addresses: tuple[InterfaceAddress, ...]

    @property
    def is_local_network(self) -> bool:
        """Whether the interface leads to other machines that a multicast reaches."""
        wanted, unwanted = UP | MULTICAST, LOOPBACK | POINT_TO_POINT
        return self.flags & wanted == wanted and not self.flags & unwanted

    def of(self, version: int) -> tuple[InterfaceAddress, ...]:
        """Return the interface's addresses of this version of IP."""
        return tuple(address for address in self.addresses if address.version == version)


class _Sockaddr(ctypes.Structure):
    """The part that all addresses share. BSDs have a length before the family, in one byte each."""

    _fields_ = (
        [("family", ctypes.c_ushort)]
        if sys.platform.startswith("linux")
        else [("length", ctypes.c_ubyte), ("family", ctypes.c_ubyte)]
    )


class _Ifaddrs(ctypes.Structure):
    pass


_Ifaddrs._fields_ = [
    ("next", ctypes.POINTER(_Ifaddrs)),
    ("name", ctypes.c_char_p),
    ("flags", ctypes.c_uint),
    ("address", ctypes.POINTER(_Sockaddr)),
    ("netmask", ctypes.POINTER(_Sockaddr)),
]
_OFFSETS = {socket.AF_INET: (4, 4), socket.AF_INET6: (8, 16)}
"""The offset and number of the address bytes in the structure of each family."""


def interfaces() -> list[Interface]:
    """Return all interfaces, in the order of their numbers; `OSError` if the system cannot list them."""
    indices = {name: index for index, name in socket.if_nameindex()}
    flags: dict[str, int] = {}
    found: dict[str, list[InterfaceAddress]] = {}
    for name, flag, address in _addresses():
        flags[name] = flag
        each = found.setdefault(name, [])
        if address is not None:
            each.append(address)
    named = sorted((indices[name], name) for name in found if name in indices)
    return [Interface(name, index, flags[name], tuple(found[name])) for index, name in named]


def own_addresses() -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """Return the IP addresses of this machine; none if the system cannot list them."""
    try:
        return [each.ip for interface in interfaces() for each in interface.addresses]
    except OSError:
        return []


def _addresses() -> Iterator[tuple[str, int, InterfaceAddress | None]]:
    library = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
    if not hasattr(library, "getifaddrs"):
        return
    first = ctypes.POINTER(_Ifaddrs)()
    if library.getifaddrs(ctypes.byref(first)) != 0:
        raise OSError(ctypes.get_errno(), "the system does not tell its interfaces")
    try:
        entry = first
        while entry:  # type: ignore[truthy-bool] # a null pointer is false
            each = entry.contents
            yield each.name.decode(errors="replace"), each.flags, _address(each)
            entry = each.next
    finally:
        library.freeifaddrs(first)


def _address(entry: _Ifaddrs) -> InterfaceAddress | None:
    address = _bytes_of(entry.address)
    netmask = _bytes_of(entry.netmask)
    if address is None or netmask is None or len(address) != len(netmask):
        return None
    length = sum(byte.bit_count() for byte in netmask)
    return ipaddress.ip_interface((address, length))


def _bytes_of(pointer: ctypes._Pointer[_Sockaddr]) -> bytes | None:
    if not pointer:  # type: ignore[truthy-bool] # a null pointer is false
        return None
    if pointer.contents.family not in _OFFSETS:
        return None
    offset, size = _OFFSETS[pointer.contents.family]
    start = ctypes.cast(pointer, ctypes.c_void_p).value or 0
    return ctypes.string_at(start + offset, size)


class NetworkFacts:
    """The known facts about the networks of interfaces.

    The hardware address of a gateway is remembered while its IP address stays the same: a router that is
    switched off does not make this another network.
    """

    def __init__(self, proc: Path = Path("/proc/net")) -> None:
        self._proc = proc
        self._seen: dict[tuple[str, str], bytes] = {}

    def of(self, interface: Interface) -> tuple[bytes, ...]:
        """Return the facts by which a network is recognised."""
        gateway = self._gateway(interface.name)
        hardware = b"" if gateway is None else self._hardware(interface.name, gateway)
        return (hardware, *(str(prefix).encode() for prefix in prefixes(interface)))

    def name(self, interface: Interface) -> str:
        """Return the name of the network, for people."""
        shown = ", ".join(str(prefix) for prefix in prefixes(interface))
        gateway = self._gateway(interface.name)
        return f"{interface.name} {shown}" + (f" via {gateway}" if gateway else "")

    def _gateway(self, name: str) -> str | None:
        for line in self._lines("route"):
            fields = line.split()
            if len(fields) < 4 or fields[0] != name or fields[1] != "00000000":
                continue
            if int(fields[3], 16) & (_ROUTE_UP | _ROUTE_GATEWAY) == _ROUTE_UP | _ROUTE_GATEWAY:
                return str(ipaddress.IPv4Address(bytes.fromhex(fields[2])[::-1]))
        return None

    def _hardware(self, name: str, gateway: str) -> bytes:
        for line in self._lines("arp"):
            fields = line.split()
            if len(fields) < 6 or fields[0] != gateway or fields[5] != name:
                continue
            if int(fields[2], 16) & _COMPLETE and fields[3] != _NO_ADDRESS:
                self._seen[name, gateway] = bytes.fromhex(fields[3].replace(":", ""))
        return self._seen.get((name, gateway), b"")

    def _lines(self, name: str) -> list[str]:
        with contextlib.suppress(OSError):
            return (self._proc / name).read_text().splitlines()[1:]
        return []


def prefixes(interface: Interface) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """Return the networks of the interface's addresses: those of IPv4 if there are any, else of IPv6.

    A link-local address identifies nothing, and is used only for want of a better one.
    """
    fours = [address.network for address in interface.of(4)]
    sixes = [address.network for address in interface.of(6) if not address.is_link_local]
    links = [address.network for address in interface.of(6)]
    return sorted(set(fours or sixes or links), key=str)
