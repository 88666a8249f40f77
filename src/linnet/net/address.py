"""Addresses of the form ``scheme://host:port``, and on a local network ``lan://KEY@host:port``."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from urllib.parse import urlsplit

from msgspec import Struct

from linnet.core.reasons import Reason
from linnet.edge.announcement import SCHEME as LAN
from linnet.edge.announcement import key_of, key_text
from linnet.net.failure import LinkFailure

_MAX_PLACES = 4
"""The most addresses of one host name that are tried; a name with more is not serious."""


class Address(Struct, frozen=True):
    """The parts of a hint."""

    scheme: str
    host: str
    port: int
    lan: bytes = b""
    """On a local network, the key that is shown there instead of the device's own."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        key = f"{key_text(self.lan)}@" if self.lan else ""
        return f"{self.scheme}://{key}{host}:{self.port}"


def parse_address(hint: str) -> Address:
    """Return the parts of a hint; `LinkFailure` with ``no_address`` if it is none."""
    try:
        parts = urlsplit(hint)
        host, port = parts.hostname, parts.port
        lan = key_of(parts.username or "") if parts.scheme == LAN else b""
    except ValueError as error:
        raise LinkFailure(Reason.NO_ADDRESS, f"{hint!r} is no address that we can dial") from error
    if (
        not parts.scheme
        or not host
        or port is None
        or parts.path
        or parts.query
        or (parts.username and not lan)
    ):
        raise LinkFailure(Reason.NO_ADDRESS, f"{hint!r} is not of the form tls://host:port")
    return Address(parts.scheme, host, port, lan)


def name_in(hint: str) -> str | None:
    """Return the host name in a hint; None if it has an IP address, or is of no such form."""
    try:
        host = parse_address(hint).host
    except LinkFailure:
        return None
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    return None


async def resolve_host(address: Address) -> list[Address]:
    """Return the address with each IP address of its host; `LinkFailure` if there are none."""
    try:
        ipaddress.ip_address(address.host)
    except ValueError:
        pass
    else:
        return [address]
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise LinkFailure(Reason.NO_ADDRESS, f"the name {address.host!r} has no address: {error}") from error
    hosts = dict.fromkeys(str(place[0]) for *_, place in found)
    return [Address(address.scheme, host, address.port, address.lan) for host in list(hosts)[:_MAX_PLACES]]
