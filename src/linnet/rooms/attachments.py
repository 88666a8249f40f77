"""Attachments: a file as pieces that are named by their SHA-256, and the event that says how they make it up.

An event names at most 1,024 pieces itself. For more it names lists of digests, which are pieces like any
other, and for even more lists of lists: as many levels as it takes. Since every piece is checked against the
digest that something signed leads to, it does not matter who gave it, and what was fetched once is not
fetched again.

In an encrypted room pieces and lists are sealed (`sealed_pieces`) with a key that is in the event alone. The
digests are those of what is carried, so whoever carries a piece can check it.
"""

from __future__ import annotations

import hashlib
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
from linnet.delivery.causal_messages import Digest
from linnet.rooms.file_names import NAME_CHARS, safe_name
from linnet.rooms.messages import CHUNK_BYTES
from linnet.rooms.sealed_pieces import (
    KEY_BYTES,
    content_bytes,
    open_piece,
    padded_bytes,
    seal_piece,
    unpadded,
)

ATTACHMENT_BYTES = 2048 * MIB
"""Bytes of one attachment: past this a file is better shared in another way than through a room."""

DIGESTS = 1024
"""Digests in the event itself: 32 KiB, an eighth of what an event may hold."""

LEAST_CHUNK_BYTES = KIB
"""Bytes of a piece: smaller ones would cost more to ask for than to send."""

LEVELS = 4
"""Levels of lists: with the smallest pieces enough for a thousand gibibytes."""

_DIGEST_BYTES = 32
_MEDIA = r"\A[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+\Z"


class Attachment(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The body of an event that shares a file."""

    name: Annotated[str, Meta(max_length=NAME_CHARS)]
    """As the sender says it: shown and used only as `file_name`."""
    media: Annotated[str, Meta(max_length=127, pattern=_MEDIA)]
    size: Count
    chunk_bytes: Annotated[int, Meta(ge=LEAST_CHUNK_BYTES, le=CHUNK_BYTES)]
    """Bytes of every piece but the last, as it is carried."""
    sha256: Digest
    """Of the whole file."""
    levels: Annotated[int, Meta(ge=0, le=LEVELS)]
    """0: `digests` are those of the pieces; more: of lists, so many levels above them."""
    digests: Annotated[tuple[Digest, ...], Meta(max_length=DIGESTS)]
    key: Annotated[bytes, Meta(min_length=KEY_BYTES, max_length=KEY_BYTES)] | None = None
    """What its pieces are sealed with; None: they are not."""

    def __repr__(self) -> str:
        # Without the key, which is for the members of the room.
        sealed = "" if self.key is None else ", sealed"
        return f"Attachment({self.name!r}, {self.media!r}, {self.size} bytes{sealed})"

    @property
    def file_name(self) -> str:
        """A name to show and to save it under."""
        return safe_name(self.name)


class Piece(Struct, frozen=True, gc=False):
    """Some bytes, with what names them."""

    digest: bytes
    data: bytes


_decode = msgspec.msgpack.Decoder(Attachment).decode
_encode = msgspec.msgpack.Encoder().encode


def piece_of(data: bytes) -> Piece:
    """These bytes with their digest."""
    return Piece(hashlib.sha256(data).digest(), data)


def attachment_body(attachment: Attachment) -> bytes:
    """The body of the event that shares a file. Without a key it is as nodes read it that know of none."""
    fields = msgspec.structs.astuple(attachment)
    return _encode(fields if attachment.key is not None else fields[:-1])


def attachment_of(body: bytes, most: int = ATTACHMENT_BYTES) -> Attachment:
    """What an event shares; `InvalidEvent` if that is nothing, or a file of more than `most` bytes."""
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
    """The pieces of a file in order, then those of its lists, and last the attachment that names them.

    Holds no more than one piece and the digests. `Refused` if the file is larger than `most`. A key seals
    all pieces; it must be new and random for each file, and for each attempt to read one.
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
    """A file on its way back from its pieces: says what is wanted next, and gives what is checked.

    Pieces may come in any order within the window of those that are wanted; no more of them are held.
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
        """Bytes that were given out."""

    @property
    def complete(self) -> bool:
        """Whether all of it was given out, and the whole was checked."""
        return not self._todo

    def wanted(self, window: int) -> list[bytes]:
        """The next digests that are to be fetched, of so many that lie ahead."""
        self._window = window
        ahead = dict.fromkeys(digest for digest, _ in islice(self._todo, window))
        return [digest for digest in ahead if digest not in self._held]

    def give(self, digest: bytes, data: bytes) -> list[bytes]:
        """Take a piece that was wanted; what of the file it sets free, in order.

        `RemoteError` if it is another piece, or if the pieces are not those of this file: then whoever made
        the attachment is to blame, and no other source would do better. So it is too (``undecryptable``) if
        one cannot be opened, since its digest is right.
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
        """What the next piece of a level holds."""
        key, number = self._attachment.key, self._numbers[level]
        self._numbers[level] += 1
        return data if key is None else open_piece(key, number, data)

    def _list(self, data: bytes) -> list[bytes]:
        """The digests of a list."""
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
    """Raise `RemoteError` unless these bytes are what the digest names."""
    if hashlib.sha256(data).digest() != digest:
        raise RemoteError(Reason.MALFORMED, "a piece that is not what its digest names")


def join(attachment: Attachment, pieces: dict[bytes, bytes]) -> Iterator[bytes]:
    """A file from pieces that are all there, checked; `RemoteError` if one is missing or wrong.

    What is wrong may show only after some of it was given out.
    """
    joining = Joining(attachment)
    while not joining.complete:
        (digest,) = joining.wanted(1)
        data = pieces.get(digest)
        if data is None:
            raise RemoteError(Reason.NOT_HELD, f"the piece {digest.hex()}")
        yield from joining.give(digest, data)


def _counts(size: int, chunk_bytes: int, sealed: bool) -> list[int]:
    """How many pieces a file has, and how many lists on each level above them; the last are in the event."""
    room = content_bytes(chunk_bytes, sealed)
    counts = [-(-size // room)]
    while counts[-1] > DIGESTS:
        counts.append(-(-counts[-1] // (room // _DIGEST_BYTES)))
    return counts


def _padded(part: bytes, chunk_bytes: int) -> bytes:
    return part.ljust(padded_bytes(len(part), chunk_bytes), b"\0")


def _regular(data: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The same bytes in parts of this size; the last may be smaller."""
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
