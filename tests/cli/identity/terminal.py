"""Commands on a terminal, as a person sees them."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[3]
LIMIT = 30.0


class Terminal:
    """A process at the other end of a terminal."""

    def __init__(self, *words: str) -> None:
        self.shown = ""
        self._seen = 0
        self._ours, theirs = pty.openpty()
        # A session of its own: the terminal of whoever runs the tests is not asked.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "linnet.cli", *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=ROOT,
            start_new_session=True,
        )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(LIMIT)
        os.close(self._ours)

    def until(self, text: str) -> None:
        """Read until the process has said this, after what was waited for before."""
        while (at := self.shown.find(text, self._seen)) < 0:
            assert self._read(), f"ended without {text!r}: {self.shown}"
        self._seen = at + len(text)

    def type(self, line: str) -> None:
        """Type a line."""
        os.write(self._ours, f"{line}\n".encode())

    def end(self) -> int:
        """Read all that is left; how it ended."""
        while self._read():
            pass
        return self._process.wait(LIMIT)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._ours], [], [], LIMIT)
        assert ready, f"nothing more came after: {self.shown}"
        try:
            piece = os.read(self._ours, 4096)
        except OSError:  # The other end is closed.
            return False
        self.shown += piece.decode()
        return bool(piece)
