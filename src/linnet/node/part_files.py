"""Files that come piece by piece: under another name until they are whole, and gone on with after a break."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from linnet.core.errors import LocalError

SUFFIX = ".part"


class PartFile:
    """A file on its way to `target`. What an earlier try has written of it stays."""

    def __init__(self, target: Path, size: int) -> None:
        """`LocalError` if the target is there already."""
        self.target = target
        self.size = size
        self._part = target.with_name(target.name + SUFFIX)
        if target.exists():
            raise LocalError(f"{target}: is there already; choose another name, or remove it")
        kept = self._part.stat().st_size if self._part.exists() else 0
        self.done = kept if kept <= size else 0
        """Bytes that are written."""

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
        """The next bytes."""
        self._file.write(piece)
        self.done += len(piece)
