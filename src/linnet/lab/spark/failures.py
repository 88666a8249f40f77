"""Errors of Java, Spark and the system that mean that the machine has too little of something, as one line.

An exception of Java comes with its causes, in Java's own process. They are read with care: a Java that has no
memory left, or cannot write, may fail to tell what went wrong.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException

from linnet.lab.errors import LabError

GOES_ON = "What is whole stays: the same command goes on from there"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FULL_WORDS = tuple(os.strerror(number) for number in _FULL)
_HEAP_WORDS = (
    "OutOfMemoryError",
    "Java heap space",
    "GC overhead limit",
    "Not enough memory",
    "Cannot allocate",
)
_WORKER_WORDS = ("Python worker exited unexpectedly", "Python worker failed to connect back")
_DEEPEST = 50
TROUBLES = (Py4JError, PySparkException, OSError, MemoryError)
"""What may be a shortage."""


def shortage(error: BaseException, memory: str, scratch: Path) -> LabError | None:
    """What to tell if this error means a full disk or too little memory, and None if it does not."""
    words = list(said_by(error))
    if any(full in each for each in words for full in _FULL_WORDS) or _errno(error) in _FULL:
        free = shutil.disk_usage(scratch.parent).free // 2**20
        return LabError(
            "a disk is full: that of the tables (--out), or that of scratch files "
            f"({scratch.parent}, {free:,} MB free; set TMPDIR to use another). Make room, or choose another. "
            f"{GOES_ON}"
        )
    if isinstance(error, MemoryError) or any(short in each for each in words for short in _HEAP_WORDS):
        return LabError(f"memory ran out, of which Java has {memory}: give it more with --memory. {GOES_ON}")
    if any(short in each for each in words for short in _WORKER_WORDS):
        return LabError(
            "a worker of Python was killed, most likely since the machine has no memory left: leave it more "
            f"with a smaller --memory than {memory}, or use fewer cores with --master local[1]. {GOES_ON}"
        )
    return None


def note_words(error: BaseException) -> None:
    """Note on an error of Java what it says, once: when it is printed, Java is gone and cannot be asked."""
    if isinstance(error, Py4JJavaError | CapturedException) and not hasattr(error, "__notes__"):
        words = [each for each in _own_words(error) if each not in ("", "None")]
        error.add_note(": ".join(words))


def said_by(error: BaseException) -> Iterator[str]:
    """What an error and its causes say, on both sides, as far as they can be asked."""
    seen: BaseException | None = error
    for _ in range(_DEEPEST):
        if seen is None:
            return
        yield from _own_words(seen)
        seen = seen.__cause__ or seen.__context__


def _own_words(error: BaseException) -> Iterator[str]:
    if isinstance(error, Py4JJavaError):
        yield from _java_words(error.java_exception)
    elif isinstance(error, CapturedException):
        # Its text is made by Java when it is asked for.
        yield from _java_words(error._origin)
        yield error._desc or ""
    else:
        yield f"{type(error).__name__}: {error}"


def _java_words(exception: Any) -> Iterator[str]:  # noqa: ANN401 (py4j has no types)
    for _ in range(_DEEPEST):
        if exception is None:
            return
        try:
            yield str(exception.getClass().getName())
            yield str(exception.getMessage())
            exception = exception.getCause()
        except (Py4JError, OSError, AttributeError):
            return


def _errno(error: BaseException) -> int | None:
    return error.errno if isinstance(error, OSError) else None
