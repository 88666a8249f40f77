"""Where a peer may be dialled: ``tls://host:port``, or ``wss://host:port`` for WebSocket.

On a local network ``lan://KEY@host:port``, with the key that was announced there.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from enum import StrEnum
from urllib.parse import urlsplit

from msgspec import Struct

from linnet.core.reasons import Reason
from linnet.edge.hints import key_of, key_text
from linnet.net.failure import LinkFailure

_MAX_PLACES = 4
"""Addresses of one host name that are tried; a name with more is somebody's joke."""


class Scheme(StrEnum):
    """How frames are carried. Encryption and authentication are the same for all."""

    TLS = "tls"
    WSS = "wss"
    LAN = "lan"


class Address(Struct, frozen=True):
    """A hint, taken apart."""

    scheme: Scheme
    host: str
    port: int
    lan: bytes = b""
    """The key that is shown there instead of the device's own, on a local network."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        key = f"{key_text(self.lan)}@" if self.lan else ""
        return f"{self.scheme}://{key}{host}:{self.port}"


def parse_address(hint: str) -> Address:
    """The parts of a hint; `LinkFailure` with ``no_address`` if it is none."""
    try:
        parts = urlsplit(hint)
        scheme, host, port = Scheme(parts.scheme), parts.hostname, parts.port
        lan = key_of(parts.username or "") if scheme is Scheme.LAN else b""
    except ValueError as error:
        raise LinkFailure(Reason.NO_ADDRESS, f"{hint!r} is no address that we can dial") from error
    if not host or port is None or parts.path or parts.query or (parts.username and not lan):
        raise LinkFailure(Reason.NO_ADDRESS, f"{hint!r} is not of the form tls://host:port")
    return Address(scheme, host, port, lan)


async def resolve(address: Address) -> list[Address]:
    """The same address for each IP address of its host; `LinkFailure` if it has none."""
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
