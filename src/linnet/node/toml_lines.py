"""On which line of a TOML text each key stands, which `tomllib` does not tell.

The text must have been parsed by `tomllib` before: this only finds places, it judges nothing.
"""

from __future__ import annotations

import re

Path = tuple[str | int, ...]
"""Where a value stands: keys, and the numbers of elements in arrays of tables."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"[ \t]*")
_NEXT = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_STRING = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'', re.DOTALL)
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")


def key_lines(text: str) -> dict[Path, int]:
    """The line, from 1, of every table header and of every key outside inline tables."""
    return _Scan(text).lines()


def line_of(lines: dict[Path, int], path: Path) -> int | None:
    """The line of a path, or of the nearest thing around it that has a line of its own."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None


class _Scan:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._lines: dict[Path, int] = {}
        self._elements: dict[Path, int] = {}

    def lines(self) -> dict[Path, int]:
        table: Path = ()
        line, counted = 1, 0
        while self._skip(_NEXT) < len(self._text):
            line, counted = line + self._text.count("\n", counted, self._at), self._at
            if self._text[self._at] == "[":
                table = self._header()
                self._lines.setdefault(table, line)
            else:
                path = (*table, *self._key())
                for end in range(len(table) + 1, len(path) + 1):
                    self._lines.setdefault(path[:end], line)
                self._value()
        return self._lines

    def _header(self) -> Path:
        """The path of ``[a.b]`` or ``[[a.b]]``, with the number of each array's current element."""
        is_element = self._text.startswith("[[", self._at)
        self._at += 2 if is_element else 1
        keys = self._key()
        self._at = self._end_of_line()
        path: Path = ()
        for number, key in enumerate(keys):
            path = (*path, key)
            if is_element and number == len(keys) - 1:
                self._elements[path] = self._elements.get(path, -1) + 1
            if path in self._elements:
                path = (*path, self._elements[path])
        return path

    def _key(self) -> tuple[str, ...]:
        """A dotted key; stops behind the ``=`` or at what closes a header."""
        parts: list[str] = []
        while self._skip(_BLANK) < len(self._text):
            match = _BARE.match(self._text, self._at)
            if match:
                parts.append(match.group())
            else:
                match = _STRING.match(self._text, self._at)
                if not match:
                    break
                parts.append(_unquoted(match.group()))
            self._at = match.end()
            self._skip(_BLANK)
            mark = self._text[self._at : self._at + 1]
            if mark != ".":
                self._at += mark == "="
                break
            self._at += 1
        return tuple(parts)

    def _value(self) -> None:
        """Pass over a value, whatever it is, to the end of its line."""
        depth = 0
        while self._at < len(self._text):
            match = _STRING.match(self._text, self._at)
            if match:
                self._at = match.end()
                continue
            char = self._text[self._at]
            if char == "#":
                self._at = self._end_of_line()
                continue
            if char == "\n" and depth == 0:
                return
            depth += (char in "[{") - (char in "]}")
            self._at += 1

    def _skip(self, blank: re.Pattern[str]) -> int:
        match = blank.match(self._text, self._at)
        if match:
            self._at = match.end()
        return self._at

    def _end_of_line(self) -> int:
        end = self._text.find("\n", self._at)
        return len(self._text) if end < 0 else end


def _unquoted(quoted: str) -> str:
    if quoted.startswith("'"):
        return quoted.strip("'")
    return _ESCAPE.sub(_plain, quoted[1:-1])


def _plain(match: re.Match[str]) -> str:
    code = match.group(1)
    return chr(int(code[1:], 16)) if code[0] in "uU" and len(code) > 1 else _ESCAPES.get(code, code)
