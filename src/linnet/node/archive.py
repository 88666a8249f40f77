"""Exports and imports a node: its identity, configuration and event log in one private file.

With the log goes the device key: the chains of this device go on where they were, so the old home must not
run again. Without the log only the person and the configuration go, and the new home is a new device of the
same person: the same device with an empty log would begin its chains anew, and others would reject them as
forked.

The file is a title, a header, then records of a bounded size; the last holds a hash of all earlier ones, so
that a cut file is noticed. A passphrase seals every record (Argon2id, XChaCha20-Poly1305).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, BinaryIO, TypeAlias, TypeVar, assert_never

import msgspec
from msgspec import Meta, Struct
from nacl import bindings, pwhash
from nacl.exceptions import CryptoError

from linnet.core.errors import LocalError
from linnet.identity.cards import Card
from linnet.identity.keys import SEED_BYTES, SigningKey
from linnet.node import config_file
from linnet.node.home import Home, HomeError, Opened, held, home_path, new_home, open_home, write_identity
from linnet.node.keyfiles import (
    PRIVATE_FILE,
    load_card,
    load_key,
    save_card,
    save_key,
    sync_directory,
    write_private,
)

_TITLE = b"linnet archive 1\n"
_CHUNK_BYTES = 256 * 1024
_RECORD_BYTES = 2 * 1024 * 1024
_LARGEST_MEMORY = 1024 * 1024 * 1024
_LARGEST_OPERATIONS = 16

Seed = Annotated[bytes, Meta(min_length=SEED_BYTES, max_length=SEED_BYTES)]
Transform = Callable[[bytes], bytes]


class ArchiveError(LocalError):
    """The file is not an archive, is damaged, or has another passphrase."""


class Effort(Struct, frozen=True):
    """The cost of one guess at a passphrase."""

    operations: Annotated[int, Meta(ge=1, le=_LARGEST_OPERATIONS)] = pwhash.argon2id.OPSLIMIT_MODERATE
    memory: Annotated[int, Meta(ge=8192, le=_LARGEST_MEMORY)] = pwhash.argon2id.MEMLIMIT_MODERATE


class _Seal(Struct, frozen=True):
    salt: Annotated[bytes, Meta(min_length=16, max_length=16)]
    stream: Annotated[bytes, Meta(min_length=24, max_length=24)]
    effort: Effort


class _Header(Struct, frozen=True):
    seal: _Seal | None


class _Person(Struct, frozen=True, tag="person"):
    seed: Seed


class _Device(Struct, frozen=True, tag="device"):
    seed: Seed
    card: Card


class _Config(Struct, frozen=True, tag="config"):
    text: str


class _Log(Struct, frozen=True, tag="log"):
    """The next part of a file of the store."""

    is_wal: bool
    chunk: bytes


class _End(Struct, frozen=True, tag="end"):
    sha256: bytes


_Record: TypeAlias = _Person | _Device | _Config | _Log | _End
_RECORD: msgspec.msgpack.Decoder[_Record] = msgspec.msgpack.Decoder(_Record)
_HEADER = msgspec.msgpack.Decoder(_Header)
_T = TypeVar("_T")


def export_home(
    path: Path | None,
    target: Path,
    passphrase: str | None = None,
    with_log: bool = True,
    effort: Effort | None = None,
) -> None:
    """Write an archive of a home in which no node runs. Never overwrites a file.

    Raises `HomeBusy`, `HomeError`, `KeyFileError` or `ArchiveError`.
    """
    home = Home(home_path(path))
    if not home.path.is_dir():
        raise HomeError(f"{home.path}: there is no home to export")
    with held(home), _new_file(target) as file:
        writer = _Writer(file, passphrase, effort or Effort())
        for record in _records(home, with_log):
            writer.write(record)
        writer.end()


def import_home(source: Path, path: Path | None, now: float, passphrase: str | None = None) -> Opened:
    """Make a home from an archive; the directory must be empty.

    Raises `ArchiveError`, `ConfigError` or `HomeError`; then there is no home.
    """
    path = home_path(path)
    try:
        file = source.open("rb")
    except OSError as error:
        raise ArchiveError(f"{source}: cannot be read: {error.strerror or error}") from error
    with file, new_home(path) as home:
        try:
            _restore(home, _read(file, passphrase), now)
        except ArchiveError as error:
            raise ArchiveError(f"{source}: {error}") from error
    return open_home(path, now)


def _records(home: Home, with_log: bool) -> Iterator[_Record]:
    has_person = home.person_key.exists()
    if not with_log and not has_person:
        raise ArchiveError(
            f"{home.person_key} is not there: without the log the new home needs a new device, "
            "which only the person's key can make; export with the log"
        )
    yield _Config(home.config.read_text(encoding="utf-8"))
    if has_person:
        yield _Person(load_key(home.person_key, "person").seed)
    if not with_log:
        return
    yield _Device(load_key(home.device_key, "device").seed, load_card(home.card))
    # A node that was killed leaves what it wrote last in the write-ahead log beside the file.
    for is_wal, path in ((False, home.store), (True, _wal(home))):
        if path.exists():
            with path.open("rb") as file:
                while chunk := file.read(_CHUNK_BYTES):
                    yield _Log(is_wal, chunk)


def _restore(home: Home, records: Iterator[_Record], now: float) -> None:
    """Write the contents of an archive into a home under construction."""
    person: SigningKey | None = None
    has_device = False
    config = ""
    for record in records:
        match record:
            case _Config(text):
                config = text
            case _Person(seed):
                person = SigningKey(seed)
            case _Device(seed, card):
                has_device = True
                save_key(home.device_key, "device", SigningKey(seed))
                save_card(home.card, card)
            case _Log(is_wal, chunk):
                _append(_wal(home) if is_wal else home.store, chunk)
            case _End():
                break
            case _:
                assert_never(record)
    label = config_file.parse(config, "linnet.toml in the archive").node.label
    write_private(home.config, config.encode())
    if has_device and person is not None:
        save_key(home.person_key, "person", person)
    elif person is not None:
        write_identity(home, person, now, label)
    elif not has_device:
        raise ArchiveError("holds no identity")


def _wal(home: Home) -> Path:
    return home.store.with_name(home.store.name + "-wal")


def _append(path: Path, chunk: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE), "wb") as file:
        file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def _new_file(target: Path) -> Iterator[BinaryIO]:
    """Create a private file that appears only if all was written."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, PRIVATE_FILE)
    except OSError as error:
        raise ArchiveError(f"{target}: cannot be written: {error.strerror or error}") from error
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.link(part, target)
        sync_directory(target.parent)
    except FileExistsError as error:
        raise ArchiveError(f"{target}: is there already; choose another name") from error
    except OSError as error:
        raise ArchiveError(f"{target}: cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


class _Writer:
    def __init__(self, file: BinaryIO, passphrase: str | None, effort: Effort) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self._seal: Transform = bytes
        seal = None
        if passphrase is not None:
            salt = secrets.token_bytes(pwhash.argon2id.SALTBYTES)
            state = bindings.crypto_secretstream_xchacha20poly1305_state()
            key = _key(passphrase, salt, effort)
            stream = bindings.crypto_secretstream_xchacha20poly1305_init_push(state, key)
            seal = _Seal(salt, stream, effort)
            self._seal = lambda plain: bindings.crypto_secretstream_xchacha20poly1305_push(state, plain)
        file.write(_TITLE)
        self._put(_encode(_Header(seal)))

    def write(self, record: _Record) -> None:
        plain = _encode(record)
        self._hash.update(plain)
        self._put(self._seal(plain))

    def end(self) -> None:
        self.write(_End(self._hash.digest()))

    def _put(self, content: bytes) -> None:
        self._file.write(len(content).to_bytes(4, "big") + content)


def _read(file: BinaryIO, passphrase: str | None) -> Iterator[_Record]:
    """Yield the records of an archive; all of them are verified once the last was read."""
    if file.read(len(_TITLE)) != _TITLE:
        raise ArchiveError("this is no archive of Linnet, or of a newer version")
    header = _decode(_take(file), _HEADER)
    unseal = _unsealing(header.seal, passphrase)
    hashed = hashlib.sha256()
    while True:
        try:
            plain = unseal(_take(file))
        except (CryptoError, ValueError, RuntimeError) as error:
            raise ArchiveError("the passphrase is another, or the file is damaged") from error
        record = _decode(plain, _RECORD)
        if isinstance(record, _End):
            if record.sha256 != hashed.digest() or file.read(1):
                raise ArchiveError("damaged: its content does not fit its hash")
            yield record
            return
        hashed.update(plain)
        yield record


def _unsealing(seal: _Seal | None, passphrase: str | None) -> Transform:
    if seal is None:
        return bytes
    if passphrase is None:
        raise ArchiveError("is sealed; give its passphrase")
    state = bindings.crypto_secretstream_xchacha20poly1305_state()
    key = _key(passphrase, seal.salt, seal.effort)
    bindings.crypto_secretstream_xchacha20poly1305_init_pull(state, seal.stream, key)
    return lambda sealed: bindings.crypto_secretstream_xchacha20poly1305_pull(state, sealed)[0]


def _take(file: BinaryIO) -> bytes:
    size = int.from_bytes(file.read(4), "big")
    if not 0 < size <= _RECORD_BYTES:
        raise ArchiveError("damaged or cut short")
    content = file.read(size)
    if len(content) != size:
        raise ArchiveError("cut short")
    return content


def _key(passphrase: str, salt: bytes, effort: Effort) -> bytes:
    size = bindings.crypto_secretstream_xchacha20poly1305_KEYBYTES
    return pwhash.argon2id.kdf(size, passphrase.encode(), salt, effort.operations, effort.memory)


def _encode(value: _Record | _Header) -> bytes:
    return msgspec.msgpack.encode(value)


def _decode(raw: bytes, decoder: msgspec.msgpack.Decoder[_T]) -> _T:
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ArchiveError(f"damaged: {error}") from error
