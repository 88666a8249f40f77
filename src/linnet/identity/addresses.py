"""Addresses as people type them: ``KEY@HOST:PORT``, ``KEY@tls://…``, ``KEY@wss://…``."""

from __future__ import annotations

import ipaddress
import re

from msgspec import Struct

from linnet.core.errors import BadText
from linnet.core.ids import AuthorId, Contact, PeerId
from linnet.identity.text import Sort, from_text, to_text

SCHEMES = ("tls", "wss", "pipe")
"""TLS over TCP, WebSocket over TLS, and pipes within one process; messages to people do not mention pipes."""

_MAX_HINT_CHARS = 128
_MAX_HINTS = 8
_MAX_PORT = 65_535
_SHOWN_CHARS = 160
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?")


def parse_contact(text: str) -> Contact:
    """Parse a peer and its addresses. More addresses may follow the first, after commas."""
    key, at, where = text.strip().partition("@")
    if not at or not where:
        raise BadText(f"{_shown(text)} has no address: write KEY@HOST:PORT, for example ld1…@192.0.2.7:7700")
    if not key:
        raise BadText(
            f"{_shown(text)} has no key before the @: write KEY@HOST:PORT; `linnet status` shows it"
        )
    parts = where.split(",")
    if len(parts) > _MAX_HINTS:
        raise BadText(f"{len(parts)} addresses for one peer, at most {_MAX_HINTS} are allowed")
    return Contact(PeerId(from_text(Sort.DEVICE, key)), tuple(parse_hint(part) for part in parts))


def contact_text(contact: Contact) -> str:
    """Write a contact as `parse_contact` reads it."""
    key = to_text(Sort.DEVICE, contact.peer)
    return f"{key}@{','.join(contact.hints)}" if contact.hints else key


def parse_hint(text: str, any_port: bool = False) -> str:
    """Return an address in its one spelling, ``scheme://host:port``; ``tls`` if no scheme is named.

    With `any_port` the port may be 0: the system chooses one.
    """
    host, port, scheme = split_hint(text)
    if port == 0 and not any_port:
        raise BadText(
            f"{_shown(text)} has port 0, which nobody can dial: name the port that the peer listens on"
        )
    hint = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
    if len(hint) > _MAX_HINT_CHARS:
        raise BadText(f"{_shown(text)} is longer than {_MAX_HINT_CHARS} characters")
    return hint


def split_hint(text: str) -> tuple[str, int, str]:
    """Return host, port and scheme of an address; `BadText` tells what is wrong with it."""
    scheme, separator, rest = text.strip().partition("://")
    if not separator:
        scheme, rest = "tls", text.strip()
    if scheme not in SCHEMES:
        raise BadText(f"{_shown(text)} has the scheme {scheme[:20]!r}; allowed are tls:// and wss://")
    if "/" in rest or "?" in rest or "@" in rest:
        raise BadText(f"{_shown(text)} has more than a host and a port; write {scheme}://HOST:PORT")
    host, colon, port_text = rest.rpartition(":")
    if not colon or rest.endswith("]"):
        raise BadText(f"{_shown(text)} has no port: write HOST:PORT")
    return _host(host, text), _port(port_text, text), scheme


class HttpAddress(Struct, frozen=True):
    """Where HTTP is served."""

    host: str
    port: int
    tls: bool

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


def parse_http(text: str) -> HttpAddress:
    """Parse an address to serve HTTP at, ``HOST:PORT`` or ``https://HOST:PORT``; port 0 takes a free one.

    Plain HTTP shows everyone on the way what is asked and answered, so it is for this machine only.
    """
    scheme, separator, rest = text.strip().partition("://")
    if not separator:
        scheme, rest = "http", text.strip()
    if scheme not in ("http", "https"):
        raise BadText(f"{_shown(text)} has the scheme {scheme[:20]!r}; allowed are http:// and https://")
    host, port, _ = split_hint(f"{SCHEMES[0]}://{rest}")
    if scheme == "http" and not is_loopback(host):
        raise BadText(f"{_shown(text)} can be reached from other machines: write https://{rest}")
    return HttpAddress(host, port, scheme == "https")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can dial it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host(host: str, text: str) -> str:
    bracketed = host.startswith("[") and host.endswith("]")
    if bracketed or ":" in host:
        try:
            address = ipaddress.IPv6Address(host.strip("[]"))
        except ValueError as error:
            raise BadText(f"{_shown(text)} has {_shown(host)}, which is no IPv6 address") from error
        if not bracketed:
            raise BadText(f"{_shown(text)}: put an IPv6 address in brackets, [{address}]:PORT")
        return str(address)
    if not _HOST.fullmatch(host):
        raise BadText(f"{_shown(text)} has {_shown(host)}, which is no host name or IP address")
    return host.lower()


def _port(port: str, text: str) -> int:
    if not (port.isascii() and port.isdigit() and len(port) <= len(str(_MAX_PORT))) or int(port) > _MAX_PORT:
        raise BadText(f"{_shown(text)} has the port {_shown(port)}; a port is a number from 1 to {_MAX_PORT}")
    return int(port)


def _shown(text: str) -> str:
    """Return a text as a person may read it: bounded and with no control characters."""
    return repr(text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…")


def parse_device(text: str) -> PeerId:
    """Parse the key of a device, as people write it."""
    return PeerId(from_text(Sort.DEVICE, text))


def parse_person(text: str) -> AuthorId:
    """Parse the key of a person, as people write it."""
    return AuthorId(from_text(Sort.PERSON, text))
