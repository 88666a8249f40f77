"""Secret files: readable only by their owner, and written whole or not at all."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import stat
from pathlib import Path

import msgspec

from linnet.core.errors import LocalError
from linnet.identity.cards import Card
from linnet.identity.keys import SEED_BYTES, SigningKey

PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_MAX_BYTES = 4096
_CARD_TITLE = "linnet card 1"


class KeyFileError(LocalError):
    """A key file is missing, damaged or readable by others; the message says which and what to do."""


def write_private(path: Path, content: bytes, replace: bool = False) -> None:
    """Write a file that only its owner can read; it is durable and complete, or not there at all.

    Raises `FileExistsError` if it exists, unless it may be replaced.
    """
    # In the same directory, since a rename must not cross file systems.
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, PRIVATE_FILE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), PRIVATE_FILE)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            part.replace(path)
        else:
            os.link(part, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            part.unlink()
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_private(path: Path) -> bytes:
    """Return the content of a secret file; raises an error if others than its owner may read it."""
    try:
        with path.open("rb") as file:
            check_private(path, os.fstat(file.fileno()))
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise KeyFileError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(content) > _MAX_BYTES:
        raise KeyFileError(f"{path}: larger than {_MAX_BYTES} bytes; this is no file of ours")
    return content


def check_private(path: Path, status: os.stat_result) -> None:
    """Raise `KeyFileError` if others than the owner have any right to a file or directory."""
    if status.st_mode & _OTHERS:
        wanted = PRIVATE_DIRECTORY if stat.S_ISDIR(status.st_mode) else PRIVATE_FILE
        raise KeyFileError(
            f"{path}: has mode {stat.S_IMODE(status.st_mode):04o}, so others can use it; "
            f"run chmod {wanted:o} {path}"
        )


def save_key(path: Path, sort: str, key: SigningKey) -> None:
    """Write a key file. Raises `FileExistsError` rather than overwrite a key."""
    write_private(path, f"{_key_title(sort)}\n{base64.b64encode(key.seed).decode()}\n".encode())


def load_key(path: Path, sort: str) -> SigningKey:
    """Load a key from a file; its sort is ``person`` or ``device``."""
    seed = _payload(path, _key_title(sort))
    if len(seed) != SEED_BYTES:
        raise KeyFileError(f"{path}: damaged: the key has {len(seed)} bytes instead of {SEED_BYTES}")
    return SigningKey(seed)


def save_card(path: Path, card: Card) -> None:
    """Write a device card, replacing an older one."""
    encoded = base64.b64encode(msgspec.msgpack.encode(card)).decode()
    write_private(path, f"{_CARD_TITLE}\n{encoded}\n".encode(), replace=True)


def load_card(path: Path) -> Card:
    """Load a card from a file. The caller must check its signature and dates."""
    if not path.exists():
        raise KeyFileError(
            f"{path}: there is no card yet; on a device that holds your key say: linnet id link, with the "
            "device that linnet id ask printed here, and here: linnet id accept, with what it prints"
        )
    try:
        return msgspec.msgpack.decode(_payload(path, _CARD_TITLE), type=Card)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise KeyFileError(f"{path}: damaged: {error}") from error


def _key_title(sort: str) -> str:
    return f"linnet {sort} key 1"


def _payload(path: Path, title: str) -> bytes:
    lines = read_private(path).split(b"\n")
    if lines[0] != title.encode():
        raise KeyFileError(f"{path}: does not begin with {title!r}; this is another sort of file")
    try:
        return base64.b64decode(lines[1] if len(lines) > 1 else b"", validate=True)
    except (binascii.Error, ValueError) as error:
        raise KeyFileError(f"{path}: damaged: its second line is no base64") from error
