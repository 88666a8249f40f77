"""Names become keyed hashes: the same person stays the same person, and nobody is named.

The key is made from a salt. Whoever has neither the salt nor the source cannot try names out.
"""

from __future__ import annotations

import os
import secrets
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct

from linnet.lab.errors import LabError
from linnet.lab.sources.rows import UNKNOWN_USER, storable

SALT_FILE = "salt"
_REMEMBERED = 1 << 16


class Names(Struct, frozen=True):
    """How names are written."""

    key: bytes
    keep: bool = False
    """Chats keep their names; people never do."""

    def user(self, name: str) -> str:
        """A person: 16 hexadecimal digits."""
        return _hashed(self.key, b"user", name) if name else UNKNOWN_USER

    def chat(self, parts: tuple[str, ...], numbers_are_ids: bool) -> str:
        """A chat: hashes of the parts of its name, besides numbers where those are ids of a program."""
        return "/".join(
            storable(part)
            if self.keep or (numbers_are_ids and part.isascii() and part.isdecimal())
            else _hashed(self.key, b"chat", part)
            for part in parts
        )

    @property
    def fingerprint(self) -> str:
        """Tells two salts apart without telling the salt."""
        return blake2b(b"", key=self.key, person=b"salt", digest_size=8).hexdigest()


@lru_cache(maxsize=_REMEMBERED)
def _hashed(key: bytes, purpose: bytes, name: str) -> str:
    return blake2b(name.encode("utf-8", "surrogatepass"), key=key, person=purpose, digest_size=8).hexdigest()


def names_of(salt: str, keep: bool = False) -> Names:
    """Names under a salt that somebody gave."""
    if not salt:
        raise LabError("--salt is empty: give some text, or leave the option out for a random salt")
    return Names(blake2b(salt.encode(), digest_size=32).digest(), keep)


def kept_salt(out: Path) -> str:
    """The salt of this folder, made at random at the first time; only its owner can read it."""
    path = out / SALT_FILE
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(file, "w") as writing:
                writing.write(secrets.token_hex(32) + "\n")
        salt = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"the salt in {path} cannot be kept: {error}") from error
    if not salt:
        raise LabError(f"the salt in {path} is empty: remove the file, or give --salt")
    return salt
