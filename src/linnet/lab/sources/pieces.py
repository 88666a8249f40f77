"""The pieces of a source: each is one file, or one file in an archive, and is read by one task.

A piece is read as a stream, so that memory does not grow with files. On a cluster every machine reads the
files under the same path, so they must lie on storage that all of them share.
"""

from __future__ import annotations

import gzip
import os
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from linnet.lab.errors import LabError
from linnet.lab.manifest import Origin, file_input
from linnet.lab.sources.rows import Bad, Numbered

LONGEST_LINE = 16 << 20
"""Bytes of a line that are read; a longer one is no line of a log."""

_BLOCK = 1 << 20
_DAMAGED = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError)


class Piece(Struct, frozen=True):
    """A file to read."""

    path: str
    shown: str
    """Its path from the folder that all files have in common: the same wherever that lies."""
    member: str = ""
    """Its name within an archive."""
    chat: str = ""
    """The name of its chat, where that is not in the file."""
    granularity: str = ""
    """Of its clock, if a look at the file told it."""
    order: str = ""
    """Of day, month and year in its dates, likewise; or the day of the whole file."""
    columns: tuple[str, ...] = ()
    """The columns that are read, where files differ in them."""


def plain_pieces(paths: Sequence[Path]) -> list[Piece]:
    """Files that were named, each a piece; `LabError` for what is not a file, or empty."""
    files = [_existing(path) for path in paths]
    for path in files:
        if path.is_dir():
            raise LabError(f"{path} is a folder: name the files in it")
    return named_by_place(files)


def named_by_place(files: Sequence[Path]) -> list[Piece]:
    """Pieces of files that are there; none may be named twice, since its rows would count twice."""
    if not files:
        raise LabError("no file was named")
    places = [Path(os.path.realpath(path)) for path in files]
    if len(set(places)) < len(places):
        twice = next(path for path in places if places.count(path) > 1)
        raise LabError(f"{twice} is named twice")
    root = Path(os.path.commonpath([place.parent for place in places]))
    for path in places:
        if path.stat().st_size == 0:
            raise LabError(f"{path} is empty")
    return [Piece(str(place), place.relative_to(root).as_posix()) for place in places]


def files_below(paths: Sequence[Path], wanted: Callable[[Path], bool]) -> list[Path]:
    """Files that were named, and those of named folders that are wanted, in order."""
    found: list[Path] = []
    for path in map(_existing, paths):
        if path.is_dir():
            inside = sorted(each for each in path.rglob("*") if each.is_file() and wanted(each))
            if not inside:
                raise LabError(f"{path} has no file of this format")
            found += inside
        else:
            found.append(path)
    return found


def _existing(path: Path) -> Path:
    if not path.exists():
        raise LabError(f"there is no {path}")
    return path


def origins_of(pieces: Sequence[Piece]) -> list[Origin]:
    """The content of all files; `LabError` if one cannot be read to its end."""
    origins: dict[str, Origin] = {}
    for piece in pieces:
        if piece.path not in origins:
            _read_through(Path(piece.path))
            origins[piece.path] = Origin(piece.shown, file_input(Path(piece.path)).digest)
    return list(origins.values())


def _read_through(path: Path) -> None:
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as file:
                while file.read(_BLOCK):
                    pass
        elif path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                torn = archive.testzip()
            if torn is not None:
                raise LabError(f"{path}: {torn} in it is damaged: fetch the file again")
    except _DAMAGED as error:
        raise LabError(f"{path} cannot be read to its end ({error}): fetch the file again") from error


@contextmanager
def opened(piece: Piece) -> Generator[BinaryIO]:
    """The bytes of a piece, unpacked."""
    if piece.member:
        with zipfile.ZipFile(piece.path) as archive, archive.open(piece.member) as file:
            yield file  # type: ignore[misc]
    elif piece.path.endswith(".gz"):
        with gzip.open(piece.path) as packed:
            yield packed  # type: ignore[misc]
    else:
        with open(piece.path, "rb") as plain:
            yield plain


def clean_lines(
    file: BinaryIO, faults: Callable[[Bad], None], encoding: str | None = None
) -> Iterator[Numbered]:
    """The lines of a file with their numbers; a line that is no UTF-8, or endless, is a fault.

    Some programs wrote bytes of an older kind: where the other `encoding` is given, a line that is not
    UTF-8 is read so.
    """
    number = 0
    while block := file.readline(LONGEST_LINE):
        number += 1
        if len(block) == LONGEST_LINE and not block.endswith(b"\n"):
            while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                pass
            faults(Bad(number, "the line is too long", ""))
            continue
        try:
            text = block.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            if encoding is None:
                faults(Bad(number, "the line is not UTF-8", block[:200].decode("utf-8", "replace")))
                continue
            text = block.decode(encoding, "replace")
        yield number, text.rstrip("\r\n")
