"""The keys of a name, derived from zone and label alone: for the lookup of its records and to seal them.

A store sees the lookup key and nothing that leads back to zone or label. As in the GNU Name System (RFC 9498)
a node that knows both can compute all keys; a password enters every key, through a memory-hard function.
"""

from __future__ import annotations

import unicodedata

from nacl import pwhash

from linnet.core.errors import BadText, Refused
from linnet.core.ids import AuthorId
from linnet.core.reasons import Reason
from linnet.groups.primitives import KEY_BYTES, Hidden, expand, extract
from linnet.identity.keys import SigningKey

PASSWORD_BYTES = 1024
PASSES = 2
MEMORY = 32 * 1024 * 1024
"""Argon2id (RFC 9106), one lane: the cost of one guess at a password. Changing either changes every key."""

_ROOT = b"linnet/name/1"
_OWNER = b"linnet/name owner/1"
_SALT_BYTES = 16


class Password(Hidden, frozen=True):
    """A password, needed to find and read a protected record. It does not show in print."""

    text: str


class Stretched(Hidden, frozen=True):
    """A password stretched for one label of one zone. The node gets this, never the password."""

    zone: AuthorId
    label: str
    secret: bytes

    def is_for(self, zone: AuthorId, label: str) -> bool:
        """Return whether it was made for this label of this zone."""
        return (self.zone, self.label) == (zone, label)


class NameKeys(Hidden, frozen=True):
    """All keys that follow from zone, label and password. Only `lookup` is ever shown to a store."""

    root: bytes

    @property
    def gate(self) -> SigningKey:
        """The key that signs records for stores: a proof that the signer knows the name, and no more."""
        return SigningKey(expand(self.root, b"gate", KEY_BYTES))

    @property
    def lookup(self) -> bytes:
        """The key under which records are stored: the public half of the gate."""
        return self.gate.public

    def seal_key(self, owner: bytes) -> bytes:
        """Return the key that seals the records of this owner."""
        return expand(self.root, b"seal" + owner, KEY_BYTES)


def stretch(password: Password, zone: AuthorId, label: str) -> Stretched:
    """Stretch a password, so that guessing is costly. This is slow on purpose: call it outside the node.

    The label must be in its canonical form (`read_label`).
    """
    text = unicodedata.normalize("NFKC", password.text).encode()
    if not 0 < len(text) <= PASSWORD_BYTES:
        raise BadText(f"a password has 1 to {PASSWORD_BYTES} bytes, not {len(text)}")
    salt = extract(_ROOT, zone + label.encode())[:_SALT_BYTES]
    return Stretched(zone, label, pwhash.argon2id.kdf(KEY_BYTES, text, salt, PASSES, MEMORY))


def derive(zone: AuthorId, label: str, stretched: Stretched | None = None) -> NameKeys:
    """Derive the keys of a label in a zone, with a password if given; `Refused` if it is of another label."""
    if stretched is not None and not stretched.is_for(zone, label):
        raise Refused(Reason.NOT_ALLOWED, "the password was stretched for another label")
    secret = b"" if stretched is None else stretched.secret
    return NameKeys(extract(_ROOT, bytes((len(secret),)) + secret + zone + label.encode()))


def owner_key(device: SigningKey, lookup: bytes) -> SigningKey:
    """Derive the key with which a device signs all its records under one lookup key, and nothing else.

    Each label has its own, so that a store cannot tell that two labels belong together.
    """
    return SigningKey(expand(extract(_OWNER, device.seed), lookup, KEY_BYTES))
