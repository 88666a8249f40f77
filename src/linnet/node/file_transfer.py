"""Transfers files piece by piece: attached to a room, put together, and resumed after a break.

Blocking: the library calls this in threads, the command line directly.
"""

from __future__ import annotations

import mimetypes
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from linnet.core.errors import LocalError, RemoteError
from linnet.rooms.attachments import ATTACHMENT_BYTES, KEY_BYTES, Attachment, Joining, Piece, split
from linnet.rooms.messages import CHUNK_BYTES

_ELSEWHERE = "choose another directory or name"
_MEDIA = "application/octet-stream"


class AttachmentError(LocalError):
    """The file cannot be read or written, or a piece of it is wrong."""


class OutgoingFile:
    """A file that is being attached; used as a context."""

    def __init__(self, path: Path, sealed: bool = False) -> None:
        """`sealed`: the room is encrypted, so that carriers must not be able to read the pieces."""
        self._path = path
        self._sealed = sealed

    def __enter__(self) -> Self:
        try:
            # Do not wait for a writer if it is a pipe.
            self._file: BinaryIO = open(os.open(self._path, os.O_RDONLY | os.O_NONBLOCK), "rb")
        except OSError as error:
            raise AttachmentError(f"{self._path}: cannot be read: {error.strerror or error}") from error
        status = os.fstat(self._file.fileno())
        self.size = status.st_size
        """Bytes of the file when it was opened."""
        if not stat.S_ISREG(status.st_mode):
            self._file.close()
            raise AttachmentError(f"{self._path}: is no file")
        if self.size > ATTACHMENT_BYTES:
            self._file.close()
            most = f"at most {ATTACHMENT_BYTES:,} can be attached"
            raise AttachmentError(f"{self._path}: has {self.size:,} bytes; {most}")
        # For this reading alone: a key that seals two contents reveals where they differ.
        key = secrets.token_bytes(KEY_BYTES) if self._sealed else None
        self._steps = split(self._blocks(), self._path.name, _media(self._path), key=key)
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def step(self) -> Piece | Attachment:
        """Return the next piece to keep, and last of all the attachment that describes them."""
        return next(self._steps)

    def _blocks(self) -> Iterator[bytes]:
        read = 0
        try:
            while block := self._file.read(CHUNK_BYTES):
                read += len(block)
                yield block
        except OSError as error:
            raise AttachmentError(f"{self._path}: cannot be read: {error.strerror or error}") from error
        if read != self.size:
            raise AttachmentError(f"{self._path}: changes while it is read; attach it again")


class IncomingFile:
    """A file that is being put together; used as a context. It gets its name only when it is complete."""

    def __init__(self, attachment: Attachment, directory: Path, name: str | None = None) -> None:
        self.path = directory / (name or attachment.file_name)
        """Its final path. A file that is there is never overwritten."""
        self._part = directory / f".{self.path.name}.{os.getpid()}.part"
        self._joining = Joining(attachment)

    def __enter__(self) -> Self:
        if self.path.exists():
            raise AttachmentError(f"{self.path}: is there already; {_ELSEWHERE}")
        try:
            self._file = self._part.open("xb")
        except OSError as error:
            raise AttachmentError(f"{self.path}: cannot be written: {error.strerror or error}") from error
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
        self._part.unlink(missing_ok=True)

    @property
    def wanted(self) -> bytes | None:
        """The digest of the next piece; None when all are there."""
        return None if self._joining.complete else self._joining.wanted(1)[0]

    @property
    def done(self) -> int:
        """Bytes that are written so far."""
        return self._joining.done

    def give(self, digest: bytes, piece: bytes) -> None:
        """Write the piece that was wanted. Raises `AttachmentError` if it is another one."""
        try:
            for block in self._joining.give(digest, piece):
                self._file.write(block)
        except RemoteError as error:
            raise AttachmentError(f"{self.path}: {error.detail}") from error
        except OSError as error:
            raise AttachmentError(f"{self.path}: cannot be written: {error.strerror or error}") from error

    def finish(self) -> Path:
        """Give the file its name; all pieces must be there."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            os.link(self._part, self.path)
        except FileExistsError as error:
            raise AttachmentError(f"{self.path}: is there already; {_ELSEWHERE}") from error
        except OSError as error:
            raise AttachmentError(f"{self.path}: cannot be written: {error.strerror or error}") from error
        return self.path


def _media(path: Path) -> str:
    return mimetypes.guess_type(path.name)[0] or _MEDIA


SUFFIX = ".part"


class PartFile:
    """A file on its way to `target`. Bytes that an earlier try has written are kept."""

    def __init__(self, target: Path, size: int) -> None:
        """Raises `LocalError` if the target exists."""
        self.target = target
        self.size = size
        self._part = target.with_name(target.name + SUFFIX)
        if target.exists():
            raise LocalError(f"{target}: is there already; choose another name, or remove it")
        kept = self._part.stat().st_size if self._part.exists() else 0
        self.done = kept if kept <= size else 0
        """Bytes that are written so far."""

    def __enter__(self) -> Self:
        self._file = self._part.open("ab")
        self._file.truncate(self.done)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if error is not None:
            return
        if self.done != self.size:
            raise LocalError(f"{self._part}: has {self.done} of {self.size} bytes; ask for it again to go on")
        self._part.rename(self.target)

    def add(self, piece: bytes) -> None:
        """Write the next bytes."""
        self._file.write(piece)
        self.done += len(piece)
