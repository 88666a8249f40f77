"""Address prefixes: how many contacts of one network a table takes, so that one network cannot fill it.

An address is what a peer says of itself. Who claims another's cannot be dialled there, and loses its place
when it is next asked something.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, ip_address

IPV4_BITS, IPV6_BITS = 24, 48
"""About what one customer of a provider can have without much cost."""
_NAME_PARTS = 2


@lru_cache(maxsize=4096)
def prefixes(hints: tuple[str, ...]) -> tuple[str, ...]:
    """The prefixes of all addresses of a peer, each once. This machine itself has none."""
    found = (prefix_of(hint) for hint in hints)
    return tuple(dict.fromkeys(each for each in found if each is not None))


def prefix_of(hint: str) -> str | None:
    """The network of an address, or the domain of a name; None for this machine itself."""
    host = hint.partition("://")[2].rpartition(":")[0].strip("[]").lower()
    try:
        address = ip_address(host)
    except ValueError:
        return None if host == "localhost" else ".".join(host.split(".")[-_NAME_PARTS:])
    if address.is_loopback:
        return None
    bits = IPV4_BITS if isinstance(address, IPv4Address) else IPV6_BITS
    shift = address.max_prefixlen - bits
    return f"{'4' if bits == IPV4_BITS else '6'}/{int(address) >> shift:x}"
