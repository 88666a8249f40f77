"""The keys of a name: where its records are kept and how they are sealed, from the zone and the label alone.

A store sees the lookup key and nothing that leads back to zone or label. As in the GNU Name System (RFC 9498)
whoever knows both computes everything; a password enters every key, through a memory-hard function.
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
"""Argon2id (RFC 9106), one lane: what one guess at a password costs. Changing either changes every key."""

_ROOT = b"linnet/name/1"
_OWNER = b"linnet/name owner/1"
_SALT_BYTES = 16


class Password(Hidden, frozen=True):
    """Without which a protected record can be neither found nor read. It does not show in print."""

    text: str


class Stretched(Hidden, frozen=True):
    """A password made costly for one label of one zone. Machines are given this, never the password."""

    zone: AuthorId
    label: str
    secret: bytes

    def fits(self, zone: AuthorId, label: str) -> bool:
        """Whether it was made for this label."""
        return (self.zone, self.label) == (zone, label)


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


def stretch(password: Password, zone: AuthorId, label: str) -> Stretched:
    """Make a password costly to guess. This takes a while, on purpose: it is for outside the machines.

    The label is to be in the one form that it is compared in (`read_label`).
    """
    text = unicodedata.normalize("NFKC", password.text).encode()
    if not 0 < len(text) <= PASSWORD_BYTES:
        raise BadText(f"a password has 1 to {PASSWORD_BYTES} bytes, not {len(text)}")
    salt = extract(_ROOT, zone + label.encode())[:_SALT_BYTES]
    return Stretched(zone, label, pwhash.argon2id.kdf(KEY_BYTES, text, salt, PASSES, MEMORY))


def derive(zone: AuthorId, label: str, stretched: Stretched | None = None) -> NameKeys:
    """The keys of a label in a zone, and with a password; `Refused` if that was stretched for another."""
    if stretched is not None and not stretched.fits(zone, label):
        raise Refused(Reason.NOT_ALLOWED, "the password was stretched for another label")
    secret = b"" if stretched is None else stretched.secret
    return NameKeys(extract(_ROOT, bytes((len(secret),)) + secret + zone + label.encode()))


def owner_key(device: SigningKey, lookup: bytes) -> SigningKey:
    """With which a device signs all its records under one lookup key, and nothing else.

    Two labels have two of them, so that a store cannot tell that they belong together.
    """
    return SigningKey(expand(extract(_OWNER, device.seed), lookup, KEY_BYTES))
