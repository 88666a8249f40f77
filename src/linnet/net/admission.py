"""Who is being let in: the strangers that have a connection and have not yet proved a key.

A connection costs a stranger nothing, so all slots may be taken by strangers who say nothing. Then a
newcomer gets the slot of the stranger that has had it longest, in the network that has most slots. An honest
node needs a few round trips, and is done long before its turn comes.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

from linnet.core.errors import ConfigError

IPAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_Prefix: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_PREFIX_BITS = {4: 24, 6: 48}
"""Bits of an address that name the network of one owner, who may have all addresses in it."""


def network_of(remote_address: str) -> str:
    """Return the network of a remote address ``HOST:PORT``; the address itself if it is no IP address."""
    address = address_of(remote_address)
    return remote_address if address is None else str(network_around(address))


def address_of(remote_address: str) -> IPAddress | None:
    """Return the IP address in ``HOST:PORT``; None if the host is none."""
    host = remote_address.rpartition(":")[0].strip("[]").partition("%")[0]
    try:
        address: IPAddress = ipaddress.ip_address(host)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def network_around(address: IPAddress) -> _Prefix:
    """Return the network of one owner that an IP address is in."""
    return ipaddress.ip_network((address, _PREFIX_BITS[address.version]), strict=False)


class Networks:
    """The networks that peers are counted by."""

    def __init__(self, shared: Iterable[str]) -> None:
        """Let peers in these prefixes, and on this machine, count one by one.

        Raises `ConfigError` if one of them is no prefix.
        """
        self._shared = [_prefix(each) for each in shared]

    def of(self, remote_address: str | None) -> str | None:
        """Return the network of a peer's address; None: the peer counts for itself."""
        address = None if remote_address is None else address_of(remote_address)
        if address is None or address.is_loopback:
            return None
        network = network_around(address)
        return None if any(_overlaps(network, shared) for shared in self._shared) else str(network)


def _prefix(text: str) -> _Prefix:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        what = f"net.shared_networks: {text!r} is no prefix such as 10.0.0.0/8"
        raise ConfigError(f"{what}: {error}") from error


def _overlaps(network: _Prefix, shared: _Prefix) -> bool:
    return network.version == shared.version and network.overlaps(shared)


class Admission:
    """The strangers that are served now, the longest first."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._served: dict[asyncio.Task[None], str] = {}
        self._shares: Counter[str] = Counter()

    def make_room(self) -> str | None:
        """Turn away a stranger if all slots are taken; return the network that it came from."""
        if len(self._served) < self._slots:
            return None
        greediest = max(self._shares, key=self._shares.__getitem__)
        task = next(task for task, network in self._served.items() if network == greediest)
        self._forget(task)
        task.cancel()
        return greediest

    def serve(self, task: asyncio.Task[None], remote_address: str) -> None:
        """Give a stranger a slot until its task ends."""
        network = network_of(remote_address)
        self._served[task] = network
        self._shares[network] += 1
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        network = self._served.pop(task, None)
        if network is not None:
            self._shares[network] -= 1
            if not self._shares[network]:
                del self._shares[network]
