"""A fuzzer that follows coverage: an input that reaches something new is kept, and changed further.

It needs nothing but Python. Where `atheris` is installed, `python -m tests.fuzz --atheris` uses that instead,
which is faster and learns from comparisons.
"""

from __future__ import annotations

import hashlib
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any, NamedTuple

import linnet

_SOURCE = str(Path(linnet.__file__).parent)
_WORDS = (
    b"\x00", b"\xff", b"\x7f", b"\x80", b"\xc0", b"\xc4\x20", b"\xdc\xff\xff", b"\xdd\xff\xff\xff\xff",
    b"\xcf" + b"\xff" * 8, b"\xd9\x80", b"\xc3\x28", b"\xed\xa0\x80", b"\n", b"\t", b" ", b"\r\n", b"=",
    b"-1", b"9" * 20, b"1e999", b"nan", b"[]", b"{}", b"null", b'"', b"\\u0000", b"\x91" * 40, b"[" * 40,
    b":", b"@", b"/", b"::", b"%", b"\xe2\x80\xae", b"\xc5\xbf",
)  # fmt: skip
"""Pieces that formats of this kind stumble over: lengths, ends of numbers, half of a letter, deep nesting."""


class Crash(NamedTuple):
    """An input by which a target raised an error, and the error."""

    data: bytes
    error: BaseException

    def __str__(self) -> str:
        shown = "".join(traceback.format_exception(self.error, limit=-4))
        return f"{self.data.hex()}\n{shown}"


class Coverage:
    """The steps from line to line, in the source of Linnet, that a call takes, and about how often each."""

    def __init__(self) -> None:
        self._edges: dict[int, int] = {}
        self._seen: set[int] = set()
        self._traced: dict[CodeType, bool] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def run(self, call: Callable[[], None]) -> int:
        """Make a call; return how many steps in it are new."""
        edges = self._edges = {}
        sys.settrace(self._enter)
        try:
            call()
        finally:
            sys.settrace(None)
        before = len(self._seen)
        self._seen.update(hash((edge, count.bit_length())) for edge, count in edges.items())
        return len(self._seen) - before

    def _enter(self, frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        code = frame.f_code
        traced = self._traced.get(code)
        if traced is None:
            traced = self._traced[code] = code.co_filename.startswith(_SOURCE)
        if not traced:
            return None
        before, edges, base = 0, self._edges, hash((code.co_filename, code.co_firstlineno))

        def step(frame: FrameType, event: str, arg: object) -> Any:  # noqa: ANN401 - as tracing wants it
            nonlocal before
            if event == "line":
                edge = hash((base, before, frame.f_lineno))
                edges[edge] = edges.get(edge, 0) + 1
                before = frame.f_lineno
            return step

        return step


class Fuzzer:
    """Runs a target on inputs and on changes of them."""

    def __init__(
        self, run: Callable[[bytes], None], inputs: Iterable[bytes], rng: Random, largest: int
    ) -> None:
        self._run = run
        self._rng = rng
        self._largest = largest
        self.coverage = Coverage()
        self.corpus: list[bytes] = []
        """The inputs that reached something new, in order."""
        self.crashes: dict[str, Crash] = {}
        """One for each place in the source where an error was raised."""
        self.runs = 0
        for data in inputs:
            self.try_input(data)

    def try_input(self, data: bytes) -> None:
        """Run the target on an input, and keep it if it reached something new."""
        self.runs += 1
        try:
            if self.coverage.run(lambda: self._run(data)):
                self.corpus.append(data)
        except Exception as error:  # whatever it is, it is what we look for
            self.crashes.setdefault(_place_of(error), Crash(data, error))

    def go_on(self, runs: int | None = None, seconds: float = 0.0) -> None:
        """Try so many changes of inputs, or as many as there is time for."""
        end = time.monotonic() + seconds
        while (runs is not None and runs > 0) or (runs is None and time.monotonic() < end):
            runs = None if runs is None else runs - 1
            self.try_input(self.change(self._choose()))

    def _choose(self) -> bytes:
        if not self.corpus:
            return b""
        # The latest are most likely to lead on.
        place = len(self.corpus) - 1 - int(len(self.corpus) * self._rng.random() ** 2)
        return self.corpus[place]

    def change(self, data: bytes) -> bytes:
        """Change an input in a few places."""
        rng, changed = self._rng, bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 4, 8))):
            at = rng.randrange(len(changed) + 1)
            size = rng.choice((1, 1, 2, 4, 16))
            match rng.randrange(7):
                case 0:
                    changed[at : at + 1] = rng.randbytes(1)
                case 1:
                    changed[at:at] = rng.randbytes(size)
                case 2:
                    del changed[at : at + size]
                case 3:
                    changed[at:at] = rng.choice(_WORDS)
                case 4 if changed:
                    changed[at % len(changed)] ^= 1 << rng.randrange(8)
                case 5:
                    other = rng.choice(self.corpus) if self.corpus else b""
                    start = rng.randrange(len(other) + 1)
                    changed[at : at + size] = other[start : start + rng.randrange(1, 64)]
                case _:
                    start = rng.randrange(len(changed) + 1)
                    changed[at:at] = changed[start : start + size]
        return bytes(changed[: self._largest])


def _place_of(error: BaseException) -> str:
    """The place in our source that an error comes from."""
    places = traceback.extract_tb(error.__traceback__)
    ours = [f"{each.filename}:{each.lineno}" for each in places if each.filename.startswith(_SOURCE)]
    return f"{type(error).__name__} at {(ours or [str(places[-1:])])[-1]}"


def file_name(data: bytes) -> str:
    """The name of an input's file: its hash, so that equal ones are one file."""
    return hashlib.sha256(data).hexdigest()[:16]


def read_corpus(folder: Path) -> Iterator[bytes]:
    """The inputs of a folder, in the order of their names."""
    for path in sorted(folder.glob("*")) if folder.exists() else ():
        yield path.read_bytes()


def smallest_cover(run: Callable[[bytes], None], inputs: Iterable[bytes]) -> list[bytes]:
    """Return inputs that together reach all that all of them reach, the shortest first."""
    coverage = Coverage()
    kept: list[bytes] = []
    for data in sorted(dict.fromkeys(inputs), key=lambda each: (len(each), each)):
        try:
            if coverage.run(lambda data=data: run(data)):  # type: ignore[misc]
                kept.append(data)
        except Exception:
            kept.append(data)
    return kept
