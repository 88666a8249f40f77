"""Where a node of a local network may be dialled: ``lan://KEY@host:port``.

Such a hint is for this device alone. It is made from an announcement and the address that it came
from, and is not passed on: elsewhere it leads nowhere, and would tell where a device was.
"""

from __future__ import annotations

import base64

SCHEME = "lan"
KEY_BYTES = 32


def lan_hint(lan: bytes, source: str, port: int) -> str:
    """The hint of a node that announced this key and port from this IP address."""
    host = f"[{source}]" if ":" in source else source
    return f"{SCHEME}://{key_text(lan)}@{host}:{port}"


def is_lan_hint(hint: str) -> bool:
    """Whether it is a hint of this kind."""
    return hint.startswith(f"{SCHEME}://")


def key_text(lan: bytes) -> str:
    """A key as it stands in a hint."""
    return base64.urlsafe_b64encode(lan).rstrip(b"=").decode()


def key_of(text: str) -> bytes:
    """The key in a hint; `ValueError` if there is none."""
    try:
        key = base64.b64decode(text + "=", altchars=b"-_", validate=True)
    except ValueError as error:
        raise ValueError("no key") from error
    if len(key) != KEY_BYTES or key_text(key) != text:
        raise ValueError("no key")
    return key
