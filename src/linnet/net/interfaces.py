"""The network interfaces of this machine and their addresses, by the system's own `getifaddrs`.

Python has names and numbers of interfaces but not their addresses; the C library has them on
every Unix. Where it has not, there are no interfaces to be seen, and no local networks.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import ipaddress
import socket
import sys
from collections.abc import Iterator

from msgspec import Struct

UP, LOOPBACK, POINT_TO_POINT = 0x1, 0x8, 0x10
MULTICAST = 0x1000 if sys.platform.startswith("linux") else 0x8000

InterfaceAddress = ipaddress.IPv4Interface | ipaddress.IPv6Interface


class Interface(Struct, frozen=True):
    """One interface, as it stands now."""

    name: str
    index: int
    flags: int
    addresses: tuple[InterfaceAddress, ...]

    @property
    def is_local_network(self) -> bool:
        """Whether it leads to other machines that a multicast reaches."""
        wanted, unwanted = UP | MULTICAST, LOOPBACK | POINT_TO_POINT
        return self.flags & wanted == wanted and not self.flags & unwanted

    def of(self, version: int) -> tuple[InterfaceAddress, ...]:
        """Its addresses of this version of IP."""
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
"""Where in an address of a family its bytes begin, and how many they are."""


def interfaces() -> list[Interface]:
    """All interfaces, in the order of their numbers; `OSError` if the system does not tell."""
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
