"""Growing and rotating trace files, cut into pieces that are read once and never change.

Spark reads whole files, each once; a node appends to one file and renames it when it is full. So whole new
lines are copied into a spool, one file for each cut. A cut says in its first line how far every trace file
has been read after it, and gets its name when it is whole: lines and places are kept in one step, and
whoever is killed in between neither loses nor doubles a line.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from linnet.lab.errors import LabError
from linnet.trace.jsonlines import FILE_NAME, trace_files

PREFIX = "#"
"""Begins the first line of a cut; lines of traces begin with the number of their file."""
SUFFIX = ".cut"
CUT_BYTES = 32 << 20
"""Bytes of trace in one cut, about; what is left comes with the next."""

_PRINT_BYTES = 512


class Place(Struct, frozen=True):
    """How far a trace file was read. A file is known by its inode, which stays when it is renamed."""

    path: str
    device: int
    inode: int
    offset: int
    print_bytes: int
    print: str
    """Hash of the first `print_bytes`: an inode may be used again for another file."""


class Cut(Struct, frozen=True):
    """The first line of a cut: where everything stands after it."""

    number: int
    places: tuple[Place, ...]


class Tailer:
    """Copies whole new lines of the traces below a folder into a spool."""

    def __init__(self, folder: Path, spool: Path, without: Path, cut_bytes: int = CUT_BYTES) -> None:
        self._folder = folder
        self._spool = spool
        self._without = without.resolve()
        self._cut_bytes = cut_bytes
        try:
            spool.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LabError(f"{spool} cannot be written: {error.strerror}") from error
        for leftover in spool.glob(".*"):
            leftover.unlink()
        last = self._last()
        self.number = 0 if last is None else last.number
        self._places = {} if last is None else {(each.device, each.inode): each for each in last.places}

    def cut(self) -> bool:
        """Copy what is new, at most about `cut_bytes`; whether there was anything."""
        pieces: list[tuple[Place, bytes]] = []
        room = self._cut_bytes
        known: dict[tuple[int, int], Place] = {}
        for file in self._files():
            found = self._piece(file, room)
            if found is None:
                continue
            before, place, data = found
            known[place.device, place.inode] = place
            if data:
                room = max(0, room - len(data))
                pieces.append((before, data))
        if not pieces:
            return False
        self._places = known
        self.number += 1
        self._write(pieces, Cut(self.number, tuple(known.values())))
        return True

    def cut_all(self) -> int:
        """Copy everything that there is now; how many cuts it took."""
        cuts = 0
        while self.cut():
            cuts += 1
        return cuts

    def forget(self, number: int) -> None:
        """Cuts up to this one were taken in for good; the newest stays, for its places."""
        for path in self._cuts():
            if int(path.stem) <= number and int(path.stem) != self.number:
                path.unlink()

    def _files(self) -> Iterator[Path]:
        folders = sorted({path.parent for path in self._folder.rglob(f"{FILE_NAME}*")})
        for folder in folders:
            if self._without not in (folder.resolve(), *folder.resolve().parents):
                yield from trace_files(folder)

    def _piece(self, path: Path, room: int) -> tuple[Place, Place, bytes] | None:
        """Where a file stood, where it stands now, and the whole lines between; None if it is gone."""
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                head = file.read(_PRINT_BYTES)
                before = self._known(path, status, head)
                file.seek(before.offset)
                data = file.read(room) if room else b""
        except FileNotFoundError:  # it was rotated away since it was listed
            return None
        except OSError as error:
            raise LabError(f"{path} cannot be read: {error.strerror}") from error
        data = data[: data.rfind(b"\n") + 1]
        offset = before.offset + len(data)
        size = min(offset, _PRINT_BYTES)
        place = Place(str(path), status.st_dev, status.st_ino, offset, size, _print(head[:size]))
        return before, place, data

    def _known(self, path: Path, status: os.stat_result, head: bytes) -> Place:
        new = Place(str(path), status.st_dev, status.st_ino, 0, 0, _print(b""))
        place = self._places.get((status.st_dev, status.st_ino), new)
        same = status.st_size >= place.offset and _print(head[: place.print_bytes]) == place.print
        return msgspec.structs.replace(place, path=str(path)) if same else new

    def _write(self, pieces: list[tuple[Place, bytes]], cut: Cut) -> None:
        numbers = {(each.device, each.inode): number for number, each in enumerate(cut.places)}
        fresh = self._spool / f".{cut.number:012d}{SUFFIX}"
        with fresh.open("wb") as file:
            file.write(PREFIX.encode() + msgspec.json.encode(cut) + b"\n")
            for place, data in pieces:
                number, offset = numbers[place.device, place.inode], place.offset
                for line in data.removesuffix(b"\n").split(b"\n"):
                    file.write(b"%d\t%d\t%s\n" % (number, offset, line))
                    offset += len(line) + 1
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(self._spool / fresh.name[1:])

    def _cuts(self) -> list[Path]:
        return sorted(self._spool.glob(f"[0-9]*{SUFFIX}"))

    def _last(self) -> Cut | None:
        cuts = self._cuts()
        if not cuts:
            return None
        with cuts[-1].open("rb") as file:
            try:
                return msgspec.json.decode(file.readline()[1:], type=Cut)
            except msgspec.DecodeError as error:
                raise LabError(f"{cuts[-1]} is damaged: remove {self._spool.parent} to begin anew") from error


def _print(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
