"""Where a conversation is typed and shown: a terminal with a line that is being edited, or a pipe."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator

from linnet.cli.output import harmless, say

_CLEAR = "\r\x1b[K"
_LINE_BEFORE = "\x1b[1A\x1b[2K\r"


class Screen:
    """Lines out from several threads, lines in to one."""

    def __init__(self, prompt: str) -> None:
        self._prompt = prompt
        self._is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        self._lock = threading.Lock()
        self._is_asking = False

    def show(self, text: str) -> None:
        """Print a line, above the one that is being typed."""
        with self._lock:
            if not self._is_asking:
                say(text)
                return
            sys.stdout.write(f"{_CLEAR}{harmless(text)}\n{self._prompt}{_typed()}")
            sys.stdout.flush()

    def lines(self) -> Iterator[str]:
        """What is typed, line by line, until the end of input or Ctrl-D."""
        if not self._is_terminal:
            for line in sys.stdin:
                yield line.rstrip("\r\n")
            return
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401 - gives `input` a line that can be edited
        while True:
            self._is_asking = True
            try:
                line = input(self._prompt)
            except EOFError:
                return
            finally:
                self._is_asking = False
            # What was typed comes back from the room, with its time and its mark.
            sys.stdout.write(_LINE_BEFORE)
            yield line


def _typed() -> str:
    """What stands in the line that is being edited."""
    readline = sys.modules.get("readline")
    return "" if readline is None else str(readline.get_line_buffer())
