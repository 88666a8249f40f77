"""A file that is dropped into a place of processes while these are killed: sent, fetched, measured."""

from __future__ import annotations

import contextlib
import hashlib
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.node.lasting_reader import UNREACHED
from tests.node.place_world import PlaceWorld

from linnet.api.items import EndedView
from linnet.api.places import ExaminePlace, PieceView, ReadBody
from linnet.cli.exits import Failure
from linnet.places.commands import Announce, AnnounceMore
from linnet.trace.records import Kind

CHUNK = 480 * 1024
PATIENCE = 120.0
"""Seconds for which a node may be away, or behind."""
_PEAK = re.compile(r"VmHWM:\s+(\d+) kB")


class Peaks(threading.Thread):
    """The most memory that each node's processes ever had resident, as the kernel counts it."""

    def __init__(self, world: PlaceWorld) -> None:
        super().__init__(name="peaks", daemon=True)
        self._world = world
        self._ended = threading.Event()
        self.bytes: dict[str, int] = dict.fromkeys(world.nodes, 0)

    def run(self) -> None:
        """Look again and again: a process that is killed takes its count with it."""
        while not self._ended.wait(0.1):
            self.look()

    def look(self) -> None:
        """Look once."""
        for name, node in self._world.nodes.items():
            with contextlib.suppress(OSError):
                found = _PEAK.search(Path(f"/proc/{node.pid}/status").read_text())
                if found is not None:
                    self.bytes[name] = max(self.bytes[name], int(found[1]) * 1024)

    def end(self) -> None:
        """Look no more."""
        self._ended.set()
        self.join()


class Drop:
    """One file on its way from the host to everybody."""

    def __init__(self, world: PlaceWorld, file: Path, kills: dict[float, str]) -> None:
        """`kills`: who is killed when so much of the file has been said."""
        self._world = world
        self._file = file
        self._size = file.stat().st_size
        self._kills = sorted(kills.items())
        self._returns: list[threading.Thread] = []
        self.message = 0
        self.resumed_at: list[int] = []
        """How many bytes the host knew of after each break."""

    def send(self) -> None:
        """Say all of it, and go on where the host is whenever it was away."""
        host, place = self._world.host, self._world.place
        self.message = host.control.ask(Announce(place, "_file", more=True)).message
        with self._file.open("rb") as source:
            done = 0
            while done < self._size:
                self._kill_due(done)
                source.seek(done)
                try:
                    command = AnnounceMore(place, self.message, source.read(CHUNK))
                    done = host.control.ask(command).size
                except UNREACHED:
                    done = self._size_after_a_break()
                    self.resumed_at.append(done)
        for thread in self._returns:
            thread.join()
        host.control.ask(AnnounceMore(place, self.message, more=False))

    def _kill_due(self, done: int) -> None:
        if not self._kills or done < self._kills[0][0] * self._size:
            return
        _, name = self._kills.pop(0)
        self._world.kill(name)
        thread = threading.Thread(target=self._bring_back, args=(name,))
        self._returns.append(thread)
        thread.start()

    def _bring_back(self, name: str) -> None:
        # On a slow machine it is killed once more before it is up; then the next one starts it.
        with contextlib.suppress(Failure):
            self._world.start(name)

    def _size_after_a_break(self) -> int:
        def size() -> int | None:
            with contextlib.suppress(*UNREACHED):
                command = AnnounceMore(self._world.place, self.message)
                return self._world.host.control.ask(command).size
            return None

        return _found(size)

    def fetch(self, name: str) -> str:
        """Read all of it at a node as soon as it is there, and give its hash."""
        digest = hashlib.sha256()
        done = 0

        def read() -> int | None:
            nonlocal done
            control = self._world.nodes[name].control
            if control.ask(ExaminePlace(self._world.place)).place.message < self.message:
                return None
            for item in control.lines(ReadBody(0, self._world.place, self.message, done)):
                match item:
                    case PieceView(offset=offset, data=data) if offset == done:
                        digest.update(data)
                        done += len(data)
                    case EndedView(None):
                        return done if done == self._size else None
                    case _:
                        pass
            return done if done == self._size else None

        _found(read)
        return digest.hexdigest()

    def comings(self, name: str) -> tuple[int, int]:
        """By a node's trace, the fragments of the place that came, and how many of these came again."""
        kinds = [row.kind for row in self._world.nodes[name].rows()]
        return kinds.count(Kind.RECEIVED), kinds.count(Kind.DUPLICATE)

    def stored(self, name: str) -> int:
        """Bytes of a node's store on the disk, with its write-ahead log."""
        home = self._world.nodes[name].home
        return sum(path.stat().st_size for path in home.store.parent.glob(home.store.name + "*"))


def made_file(path: Path, size: int) -> str:
    """A file of bytes that do not repeat; its hash."""
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for part in _parts(size):
            digest.update(part)
            file.write(part)
    return digest.hexdigest()


def _parts(size: int) -> Iterator[bytes]:
    for begin in range(0, size, 1 << 20):
        yield hashlib.shake_256(begin.to_bytes(8, "big")).digest(min(1 << 20, size - begin))


def _found(look: Callable[[], int | None]) -> int:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with contextlib.suppress(*UNREACHED):
            found = look()
            if found is not None:
                return found
        time.sleep(0.2)
    raise TimeoutError("not within two minutes")
