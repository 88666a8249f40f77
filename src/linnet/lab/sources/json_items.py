"""The items of a list in JSON one by one, so that memory does not grow with the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TextIO

from linnet.lab.sources.rows import Bad

BROKEN = "the JSON is broken: nothing behind this line was read"
LARGEST_ITEM = 32 << 20
_BLOCK = 1 << 16
_SPACE = " \t\r\n"


def json_items(file: TextIO, key: str | None = None) -> Iterator[tuple[int, object] | Bad]:
    """Each item with its line: of the list that the file is, or of the list under a key of its object.

    Where the file is broken the rest cannot be told, and one bad row says so.
    """
    stream = _Stream(file)
    try:
        if key is None or stream.enter(key):
            yield from stream.items()
    except (ValueError, RecursionError):
        yield Bad(stream.line, BROKEN, "")


class _Stream:
    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._decode = json.JSONDecoder().raw_decode
        self._buffer = ""
        self._at = 0
        self._ended = False
        self.line = 1

    def enter(self, key: str) -> bool:
        """Go to the value of a key of the object; false if there is no such key."""
        self._expect("{")
        if self._next() == "}":
            return False
        while True:
            name = self._value()
            self._expect(":")
            if name == key:
                return True
            self._value()
            if self._either(",", "}") == "}":
                return False

    def items(self) -> Iterator[tuple[int, object]]:
        """The items of the list that begins here."""
        self._expect("[")
        if self._next() == "]":
            return
        while True:
            self._next()
            line = self.line
            yield line, self._value()
            if self._either(",", "]") == "]":
                return

    def _more(self) -> None:
        if self._ended or len(self._buffer) - self._at > LARGEST_ITEM:
            raise ValueError("the JSON ends too early, or does not end")
        # As much again as there is: an item is tried a few times, not once for each block.
        block = self._file.read(max(_BLOCK, len(self._buffer) - self._at))
        self._ended = not block
        self._buffer = self._buffer[self._at :] + block
        self._at = 0

    def _advance(self, to: int) -> None:
        self.line += self._buffer.count("\n", self._at, to)
        self._at = to

    def _next(self) -> str:
        """The next character that is no space; it stays."""
        while True:
            end, buffer = self._at, self._buffer
            while end < len(buffer) and buffer[end] in _SPACE:
                end += 1
            self._advance(end)
            if end < len(buffer):
                return buffer[end]
            self._more()

    def _either(self, *expected: str) -> str:
        found = self._next()
        if found not in expected:
            raise ValueError(f"{found} in the place of {expected[0]}")
        self._at += 1
        return found

    def _expect(self, expected: str) -> None:
        self._either(expected)

    def _value(self) -> object:
        self._next()
        while True:
            try:
                value, end = self._decode(self._buffer, self._at)
            except json.JSONDecodeError:
                self._more()
                continue
            # A number may go on behind what was read.
            if end == len(self._buffer) and not self._ended:
                self._grow()
                continue
            self._advance(end)
            return value

    def _grow(self) -> None:
        try:
            self._more()
        except ValueError:
            if not self._ended:
                raise
