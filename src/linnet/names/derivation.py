"""The keys of a name: where its records are kept and how they are sealed, from the zone and the label alone.

A store sees the lookup key and nothing that leads back to zone or label. As in the GNU Name System (RFC 9498)
whoever knows both computes everything; a password enters every key, through a memory-hard function.
"""

from __future__ import annotations

import unicodedata

from nacl import pwhash

from linnet.core.errors import BadText
from linnet.core.ids import AuthorId
from linnet.groups.primitives import KEY_BYTES, Hidden, expand, extract
from linnet.identity.keys import SigningKey

PASSWORD_BYTES = 1024
PASSES = 2
MEMORY = 32 * 1024 * 1024
"""Argon2id (RFC 9106), one lane: what one guess at a password costs. Changing either changes every key."""

_ROOT = b"linnet/name/1"
_OWNER = b"linnet/name owner/1"
_SALT_BYTES = 16


class Password(Hidden, frozen=True):
    """Without which a protected record can be neither found nor read. It does not show in print."""

    text: str


class NameKeys(Hidden, frozen=True):
    """All that follows from zone, label and password. Of these only `lookup` is ever shown to a store."""

    root: bytes

    @property
    def gate(self) -> SigningKey:
        """Signs records on their way into a store: proof that one knows the name, and no more than that."""
        return SigningKey(expand(self.root, b"gate", KEY_BYTES))

    @property
    def lookup(self) -> bytes:
        """The key under which records are kept: the public half of the gate."""
        return self.gate.public

    def seal_key(self, owner: bytes) -> bytes:
        """The key that records of this owner are sealed with."""
        return expand(self.root, b"seal" + owner, KEY_BYTES)


def derive(zone: AuthorId, label: str, password: Password | None = None) -> NameKeys:
    """The keys of a label in a zone. With a password this takes a while, on purpose."""
    name = zone + label.encode()
    stretched = b"" if password is None else _stretched(password, name)
    return NameKeys(extract(_ROOT, bytes((len(stretched),)) + stretched + name))


def owner_key(device: SigningKey, lookup: bytes) -> SigningKey:
    """With which a device signs all its records under one lookup key, and nothing else.

    Two labels have two of them, so that a store cannot tell that they belong together.
    """
    return SigningKey(expand(extract(_OWNER, device.seed), lookup, KEY_BYTES))


def _stretched(password: Password, name: bytes) -> bytes:
    text = unicodedata.normalize("NFKC", password.text).encode()
    if not 0 < len(text) <= PASSWORD_BYTES:
        raise BadText(f"a password has 1 to {PASSWORD_BYTES} bytes, not {len(text)}")
    salt = extract(_ROOT, name)[:_SALT_BYTES]
    return pwhash.argon2id.kdf(KEY_BYTES, text, salt, PASSES, MEMORY)
