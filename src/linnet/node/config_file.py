"""Reads ``linnet.toml``. Errors name the file, the line and the field, and what is allowed.

`tomllib` does not tell the line of a key, so `key_lines` finds it in a text that was parsed before.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path as FilePath

import msgspec
from msgspec import inspect

from linnet.core.errors import ConfigError
from linnet.node.config import NodeConfig
from linnet.node.config_problems import Path, Problem, path_text, problems, problems_of

MAX_BYTES = 1024 * 1024
"""The most bytes of a configuration: enough for thousands of streams, and it is read whole."""

MAX_PROBLEMS = 20
"""The most problems reported at once."""

_PLACE = re.compile(r"^(?P<what>.*) \(at line (?P<line>\d+), column \d+\)$", re.DOTALL)


def load(path: FilePath) -> NodeConfig:
    """Load the configuration from a file; raises `ConfigError` with all that is wrong with it."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{path}: larger than {MAX_BYTES} bytes")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: not UTF-8 text") from error
    return parse(text, str(path))


def parse(text: str, name: str = "linnet.toml") -> NodeConfig:
    """Parse a configuration; `name` is the name of the file in errors."""
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax(text, name, str(error))) from error
    except RecursionError as error:
        raise ConfigError(f"{name}: nested too deeply") from error
    except ValueError as error:  # a number or date that is TOML but that Python has no value for
        raise ConfigError(f"{name}: {error}") from error
    found = problems(tree, inspect.type_info(NodeConfig), ())
    if found:
        raise ConfigError(_told(text, name, found))
    config = msgspec.convert(tree, NodeConfig)
    found = problems_of(config)
    if found:
        raise ConfigError(_told(text, name, found))
    return config


def _syntax(text: str, name: str, message: str) -> str:
    place = _PLACE.match(message)
    if place:
        return f"{name}:{place['line']}: this is no TOML: {place['what']}"
    return f"{name}:{text.count(chr(10)) + 1}: this is no TOML: {message}"


def _told(text: str, name: str, found: list[Problem]) -> str:
    lines = key_lines(text.replace("\r\n", "\n"))
    told = []
    for problem in found[:MAX_PROBLEMS]:
        line = line_of(lines, problem.path)
        where = name if line is None else f"{name}:{line}"
        told.append(f"{where}: {path_text(problem.path)}: {problem.what}")
    if len(found) > MAX_PROBLEMS:
        told.append(f"{name}: and {len(found) - MAX_PROBLEMS} more")
    return "\n".join(told)


_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"[ \t]*")
_NEXT = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_STRING = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'', re.DOTALL)
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")


def key_lines(text: str) -> dict[Path, int]:
    """Return the line, from 1, of every table header and of every key outside inline tables."""
    return _Scan(text).lines()


def line_of(lines: dict[Path, int], path: Path) -> int | None:
    """Return the line of a path, or of the nearest enclosing thing that has a line of its own."""
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
        """Parse ``[a.b]`` or ``[[a.b]]``; return its path, with the number of each current array element."""
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
        """Parse a dotted key; stop after the ``=`` or at the end of a header."""
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
        """Skip a value of any kind, to the end of its line."""
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
