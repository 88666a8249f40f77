"""What tells one local network from another: its gateway's hardware address, and its prefix.

Prefixes alone are the same in half of all homes; with the gateway's address there is nothing that two
networks have in common. It is read from where Linux shows it; elsewhere, and where there is no
gateway, the prefix has to do. Nothing of this leaves the machine.
"""

from __future__ import annotations

import contextlib
import ipaddress
from pathlib import Path

from linnet.net.interfaces import Interface

_UP, _GATEWAY = 0x1, 0x2
_COMPLETE = 0x2
_NO_ADDRESS = "00:00:00:00:00:00"


class Surroundings:
    """Tells what is known of the network of an interface.

    The hardware address of a gateway that was seen once is remembered while its address stays: a router
    that is switched off makes no other network of this one.
    """

    def __init__(self, proc: Path = Path("/proc/net")) -> None:
        self._proc = proc
        self._seen: dict[tuple[str, str], bytes] = {}

    def facts(self, interface: Interface) -> tuple[bytes, ...]:
        """What tells this network from others."""
        gateway = self._gateway(interface.name)
        hardware = b"" if gateway is None else self._hardware(interface.name, gateway)
        return (hardware, *(str(prefix).encode() for prefix in prefixes(interface)))

    def name(self, interface: Interface) -> str:
        """The network for people."""
        shown = ", ".join(str(prefix) for prefix in prefixes(interface))
        gateway = self._gateway(interface.name)
        return f"{interface.name} {shown}" + (f" via {gateway}" if gateway else "")

    def _gateway(self, name: str) -> str | None:
        for line in self._lines("route"):
            fields = line.split()
            if len(fields) < 4 or fields[0] != name or fields[1] != "00000000":
                continue
            if int(fields[3], 16) & (_UP | _GATEWAY) == _UP | _GATEWAY:
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
    """The networks that its addresses are in: of IPv4 if there are any, else those of IPv6.

    An address for the link alone says nothing, and stands for want of a better one.
    """
    fours = [address.network for address in interface.of(4)]
    sixes = [address.network for address in interface.of(6) if not address.is_link_local]
    links = [address.network for address in interface.of(6)]
    return sorted(set(fours or sixes or links), key=str)
