"""Attachments: a file as pieces named by their SHA-256, and the event that describes how to join them.

An event names at most 1,024 pieces itself. For a larger file it names lists of digests, which are
pieces like any other, or through lists of lists: as many levels as it takes. Every piece is checked against
a digest that a signed event leads to, so any source will do, and a fetched piece is not fetched again.

In an encrypted room pieces and lists are sealed with a key that only the event contains. The digests are
those of the sealed bytes, so a relay can check a piece without the key. Each file has a key of its own, and
its pieces are numbered in the order in which they are made. The number is nonce and associated data, so that
no piece can stand for another. The last piece of a file is padded, so that the sizes of its pieces reveal
only a class of the file's size.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from linnet.core.errors import InvalidEvent, Refused, RemoteError
from linnet.core.ids import Count
from linnet.core.limits import KIB, MIB
from linnet.core.reasons import Reason
from linnet.delivery.messages import Digest
from linnet.groups.primitives import open_sealed, seal
from linnet.rooms.messages import CHUNK_BYTES

ATTACHMENT_BYTES = 2048 * MIB
"""The most bytes of one attachment: a larger file is better shared in another way than through a room."""

DIGESTS = 1024
"""The most digests in the event itself: 32 KiB, an eighth of what an event may hold."""

LEAST_CHUNK_BYTES = KIB
"""The fewest bytes of a piece: smaller ones would cost more to ask for than to send."""

LEVELS = 4
"""The most levels of lists: enough for a thousand gibibytes in the smallest pieces."""

KEY_BYTES = 32
"""Bytes of the key of a file."""
TAG_BYTES = 16
"""Bytes that sealing adds to a piece."""
CLASS_BYTES = 4 * KIB
"""The last piece of a file is padded to a multiple of this many bytes, up to the size of a full piece."""

_LABEL = b"linnet/piece/1"
_NONCE_BYTES = 12

NAME_CHARS = 255
"""The most characters of a name in an event from a peer."""

NAME_BYTES = 200
"""The most bytes of a name to save under: file systems take 255, and a program may add a suffix."""

_NAMELESS = "unnamed"
_FORBIDDEN = frozenset('/\\<>:"|?*')
"""Path separators, and characters that Windows allows in no file name."""
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of characters that are invisible, or that reorder others: a name must be what it looks like."""
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))]
)
"""Names that Windows reserves for devices, whatever follows the first dot."""

_DIGEST_BYTES = 32
_MEDIA = r"\A[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+\Z"


class Attachment(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The body of an event that shares a file."""

    name: Annotated[str, Meta(max_length=NAME_CHARS)]
    """The name that the sender gave; show and use only `file_name`."""
    media: Annotated[str, Meta(max_length=127, pattern=_MEDIA)]
    size: Count
    chunk_bytes: Annotated[int, Meta(ge=LEAST_CHUNK_BYTES, le=CHUNK_BYTES)]
    """The bytes of every piece but the last, sealed if there is a key."""
    sha256: Digest
    """The digest of the whole file."""
    levels: Annotated[int, Meta(ge=0, le=LEVELS)]
    """0 if `digests` name the pieces themselves; else they name lists, this many levels above the pieces."""
    digests: Annotated[tuple[Digest, ...], Meta(max_length=DIGESTS)]
    key: Annotated[bytes, Meta(min_length=KEY_BYTES, max_length=KEY_BYTES)] | None = None
    """The key that seals its pieces; None if they are not sealed."""

    def __repr__(self) -> str:
        # Without the key, which is for the members of the room.
        sealed = "" if self.key is None else ", sealed"
        return f"Attachment({self.name!r}, {self.media!r}, {self.size} bytes{sealed})"

    @property
    def file_name(self) -> str:
        """A safe name, to show and to save the file under."""
        return safe_name(self.name)


class Piece(Struct, frozen=True, gc=False):
    """The bytes of a piece, with the digest that names it."""

    digest: bytes
    data: bytes


_decode = msgspec.msgpack.Decoder(Attachment).decode
_encode = msgspec.msgpack.Encoder().encode


def piece_of(data: bytes) -> Piece:
    """Return these bytes as a piece, with their digest."""
    return Piece(hashlib.sha256(data).digest(), data)


def attachment_body(attachment: Attachment) -> bytes:
    """Return the body of the event that shares a file; without a key, nodes that know no keys can read it."""
    fields = msgspec.structs.astuple(attachment)
    return _encode(fields if attachment.key is not None else fields[:-1])


def attachment_of(body: bytes, most: int = ATTACHMENT_BYTES) -> Attachment:
    """Decode the body of an event; `InvalidEvent` if it is no attachment, or has more than `most` bytes."""
    try:
        attachment = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidEvent(Reason.MALFORMED, f"the body of an attachment: {error}") from error
    if attachment.size > most:
        detail = f"a file of {attachment.size} bytes, at most {most} are taken"
        raise InvalidEvent(Reason.TOO_LARGE, detail)
    counts = _counts(attachment.size, attachment.chunk_bytes, attachment.key is not None)
    if (attachment.levels, len(attachment.digests)) != (len(counts) - 1, counts[-1]):
        raise InvalidEvent(Reason.MALFORMED, "its digests are not as many as its size asks for")
    return attachment


def split(
    data: Iterable[bytes],
    name: str,
    media: str = "application/octet-stream",
    chunk_bytes: int = CHUNK_BYTES,
    most: int = ATTACHMENT_BYTES,
    key: bytes | None = None,
) -> Iterator[Piece | Attachment]:
    """Yield the pieces of a file in order, then those of its lists, and last the attachment that names them.

    Holds no more than one piece and the digests. Raises `Refused` if the file is larger than `most`. A key
    seals all pieces; it must be new and random for each file, and for each attempt to read one.
    """
    whole = hashlib.sha256()
    size = made = 0
    digests: list[bytes] = []
    room = content_bytes(chunk_bytes, key is not None)
    for part in _regular(data, room):
        size += len(part)
        if size > most:
            raise Refused(Reason.TOO_LARGE, f"a file of more than {most} bytes")
        whole.update(part)
        piece = piece_of(part if key is None else seal_piece(key, made, _padded(part, chunk_bytes)))
        made += 1
        digests.append(piece.digest)
        yield piece
    levels = 0
    while len(digests) > DIGESTS:
        lists: list[bytes] = []
        for group in _groups(digests, room // _DIGEST_BYTES):
            named = b"".join(group)
            piece = piece_of(named if key is None else seal_piece(key, made, named))
            made += 1
            lists.append(piece.digest)
            yield piece
        digests = lists
        levels += 1
    yield Attachment(safe_name(name), media, size, chunk_bytes, whole.digest(), levels, tuple(digests), key)


class Joining:
    """Joins a file from its pieces: names the pieces to fetch next, and returns checked bytes of the file.

    Pieces may come in any order within the window of wanted pieces; no others are held.
    """

    def __init__(self, attachment: Attachment) -> None:
        self._attachment = attachment
        self._todo: deque[tuple[bytes, int]] = deque(
            (digest, attachment.levels) for digest in attachment.digests
        )
        self._window = 1
        self._held: dict[bytes, bytes] = {}
        self._whole = hashlib.sha256()
        self._room = content_bytes(attachment.chunk_bytes, attachment.key is not None)
        counts = _counts(attachment.size, attachment.chunk_bytes, attachment.key is not None)
        self._numbers = [sum(counts[:level]) for level in range(attachment.levels + 1)]
        """The number of the next piece of each level."""
        self.done = 0
        """The bytes of the file that were returned so far."""

    @property
    def complete(self) -> bool:
        """Whether the whole file was returned and checked."""
        return not self._todo

    def wanted(self, window: int) -> list[bytes]:
        """Return the digests to fetch, among the next `window` that the file needs."""
        self._window = window
        ahead = dict.fromkeys(digest for digest, _ in islice(self._todo, window))
        return [digest for digest in ahead if digest not in self._held]

    def give(self, digest: bytes, data: bytes) -> list[bytes]:
        """Take a wanted piece, and return the bytes of the file that can follow now, in order.

        `RemoteError` if the bytes do not match the digest, or if the pieces are not those of this file: then
        the author of the attachment is to blame, and no other source would do better. The same holds
        (``undecryptable``) if a piece cannot be opened, since its digest is right.
        """
        check_piece(digest, data)
        if digest not in (ahead for ahead, _ in islice(self._todo, self._window)):
            return []
        self._held[digest] = data
        free: list[bytes] = []
        while self._todo and (ready := self._held.get(self._todo[0][0])) is not None:
            first, level = self._todo.popleft()
            content = self._opened(ready, level)
            if level:
                self._todo.extendleft((child, level - 1) for child in reversed(self._list(content)))
            else:
                free.append(self._next(content))
            if first not in (ahead for ahead, _ in islice(self._todo, self._window)):
                del self._held[first]
        if not self._todo:
            self._check_whole()
        return free

    def _opened(self, data: bytes, level: int) -> bytes:
        """Return the content of the next piece of a level, opened if it was sealed."""
        key, number = self._attachment.key, self._numbers[level]
        self._numbers[level] += 1
        return data if key is None else open_piece(key, number, data)

    def _list(self, data: bytes) -> list[bytes]:
        """Return the digests in a list."""
        if not data or len(data) % _DIGEST_BYTES or len(data) > self._room:
            raise RemoteError(Reason.MALFORMED, f"a list of {len(data)} bytes")
        return [data[start : start + _DIGEST_BYTES] for start in range(0, len(data), _DIGEST_BYTES)]

    def _next(self, data: bytes) -> bytes:
        expected = min(self._room, self._attachment.size - self.done)
        if self._attachment.key is not None and expected:
            data = unpadded(data, expected, self._attachment.chunk_bytes)
        if len(data) != expected or not data:
            detail = f"a piece of {len(data)} bytes where {expected} are due"
            raise RemoteError(Reason.MALFORMED, detail)
        self.done += len(data)
        self._whole.update(data)
        return data

    def _check_whole(self) -> None:
        if self.done != self._attachment.size:
            detail = f"the pieces end after {self.done} of {self._attachment.size} bytes"
            raise RemoteError(Reason.MALFORMED, detail)
        if self._whole.digest() != self._attachment.sha256:
            raise RemoteError(Reason.MALFORMED, "the whole is not what was promised")


def check_piece(digest: bytes, data: bytes) -> None:
    """Raise `RemoteError` unless these bytes have this digest."""
    if hashlib.sha256(data).digest() != digest:
        raise RemoteError(Reason.MALFORMED, "a piece that is not what its digest names")


def join(attachment: Attachment, pieces: dict[bytes, bytes]) -> Iterator[bytes]:
    """Yield the checked bytes of a file from its pieces; `RemoteError` if one is missing or wrong.

    A wrong piece may be found only after some bytes were yielded.
    """
    joining = Joining(attachment)
    while not joining.complete:
        (digest,) = joining.wanted(1)
        data = pieces.get(digest)
        if data is None:
            raise RemoteError(Reason.NOT_HELD, f"the piece {digest.hex()}")
        yield from joining.give(digest, data)


def _counts(size: int, chunk_bytes: int, sealed: bool) -> list[int]:
    """Return the number of pieces of a file, then of lists on each level; the event names the last ones."""
    room = content_bytes(chunk_bytes, sealed)
    counts = [-(-size // room)]
    while counts[-1] > DIGESTS:
        counts.append(-(-counts[-1] // (room // _DIGEST_BYTES)))
    return counts


def _padded(part: bytes, chunk_bytes: int) -> bytes:
    return part.ljust(padded_bytes(len(part), chunk_bytes), b"\0")


def _regular(data: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yield the same bytes in parts of this size; the last may be smaller."""
    held = bytearray()
    for part in data:
        held += part
        while len(held) >= size:
            yield bytes(held[:size])
            del held[:size]
    if held:
        yield bytes(held)


def _groups(digests: list[bytes], size: int) -> Iterator[list[bytes]]:
    for start in range(0, len(digests), size):
        yield digests[start : start + size]


def content_bytes(chunk_bytes: int, sealed: bool) -> int:
    """Return how many bytes of a file, or of a list, one piece holds."""
    return chunk_bytes - TAG_BYTES if sealed else chunk_bytes


def padded_bytes(content: int, chunk_bytes: int) -> int:
    """Return the size to which content is padded before it is sealed; a full piece needs no padding."""
    classes = -(-(content + TAG_BYTES) // CLASS_BYTES)
    return min(chunk_bytes, classes * CLASS_BYTES) - TAG_BYTES


def seal_piece(key: bytes, number: int, content: bytes) -> bytes:
    """Seal the content of a piece, as it is stored and sent."""
    nonce = number.to_bytes(_NONCE_BYTES, "big")
    return seal(key, nonce, content, _LABEL + nonce)


def open_piece(key: bytes, number: int, sealed: bytes) -> bytes:
    """Return the content of a piece; `RemoteError` (``undecryptable``) if key or number do not match."""
    nonce = number.to_bytes(_NONCE_BYTES, "big")
    return open_sealed(key, nonce, sealed, _LABEL + nonce)


def unpadded(content: bytes, size: int, chunk_bytes: int) -> bytes:
    """Return the first `size` bytes of a piece without its padding; `RemoteError` if the padding is wrong."""
    if len(content) != padded_bytes(size, chunk_bytes) or any(content[size:]):
        raise RemoteError(Reason.MALFORMED, f"a sealed piece of {len(content)} bytes for {size}")
    return content[:size]


def safe_name(name: str) -> str:
    """Return the name without anything that could lead elsewhere, hide something or be no file.

    Separators and the like become ``_``; invisible characters, and dots, blanks and dashes at the front,
    are removed; an empty name becomes ``unnamed``. A safe name stays as it is.
    """
    shown = "".join(map(_shown, name))
    plain = _shortened(unicodedata.normalize("NFC", shown).lstrip(" .-").rstrip(" ."))
    if plain.split(".")[0].rstrip(" ").lower() in _DEVICES:
        plain = _shortened(f"_{plain}")
    return plain or _NAMELESS


def _shown(letter: str) -> str:
    category = unicodedata.category(letter)
    if category in _UNSEEN:
        return ""
    if category == "Zs":
        return " "
    return "_" if letter in _FORBIDDEN else letter


def _shortened(name: str) -> str:
    """Cut a name to `NAME_BYTES`, and keep its ending if that is short."""
    if len(name.encode()) <= NAME_BYTES:
        return name
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending.encode()) > 16:
        stem, dot, ending = name, "", ""
    room = NAME_BYTES - len((dot + ending).encode())
    return stem.encode()[:room].decode(errors="ignore").rstrip(" .") + dot + ending
