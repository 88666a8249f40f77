"""The network of the demo: homes, processes, and the roles of tracker and standby."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from linnet.cli.demo.member import Begin, Ready, Report, Resumed, State
from linnet.cli.exits import Failure
from linnet.cli.moments import wall_clock
from linnet.identity.addresses import parse_contact
from linnet.node import home as homes
from linnet.node.background import Background
from linnet.node.config import (
    ControlSection,
    NodeConfig,
    NodeSection,
    StorageSection,
    TraceSection,
    TrackerSection,
)
from linnet.overlay.tracker_choice import TrackerChoice
from linnet.streams.stream_names import topic_of
from linnet.trace.records import Level

ERRORS = "stderr.txt"
_REPORT: msgspec.json.Decoder[Report] = msgspec.json.Decoder(Report)
_STOP_SECONDS = 10.0
_SHOWN_CHARS = 400


class Process:
    """A node that runs in a process of its own."""

    def __init__(self, name: str, home: Path, stream: str | None, happened: asyncio.Event) -> None:
        """Sets `happened` whenever the process reports something or ends."""
        self.name = name
        self.home = home
        self.ready: Ready | None = None
        self.state: State | None = None
        self.resumed: bool | None = None
        self.is_killed = False
        self._stream = stream
        self._happened = happened
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, background: Background) -> None:
        """Start the process; `ready` is set when its node is running."""
        self.ready = self.state = self.resumed = None
        self.is_killed = False
        given = [str(self.home)] if self._stream is None else [str(self.home), self._stream]
        with (self.home / ERRORS).open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "linnet.cli.demo.member",
                *given,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
            )
        self._process = process
        background.spawn(self._listen(process), f"listen to {self.name}")

    def begin(self, begin: Begin) -> None:
        """Have the node publish."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(msgspec.json.encode(begin) + b"\n")

    async def kill(self) -> None:
        """Kill the process by SIGKILL; nothing of it runs when this returns."""
        if self._process is not None and self._process.returncode is None:
            self.is_killed = True
            self._process.kill()
            await self._process.wait()

    async def stop(self) -> None:
        """Stop the process in good order, and kill it if it takes too long."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            await self.kill()

    def check(self) -> None:
        """Raise `Failure` if the process ended without being killed."""
        process = self._process
        if process is None or process.returncode is None or self.is_killed:
            return
        raise Failure(f"{self.name} ended by itself with status {process.returncode}: {self._last_words()}")

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        if process.stdout is None:
            return
        async for line in process.stdout:
            match _REPORT.decode(line):
                case Ready() as ready:
                    self.ready = ready
                case State() as state:
                    self.state = state
                case Resumed(resumed):
                    self.resumed = resumed
            self._happened.set()
        await process.wait()
        self._happened.set()

    def _last_words(self) -> str:
        lines = (self.home / ERRORS).read_text(errors="replace").strip().splitlines()
        return lines[-1][:_SHOWN_CHARS] if lines else "it said nothing"


STREAM = "demo"

_TRACE = TraceSection(level=Level.FULL, max_bytes=256 * 1024 * 1024, flush_seconds=0)
"""One file holds a whole run: no rows are rotated away, and none are lost with a process."""

_CONTROL = ControlSection(enabled=False)
_READY_SECONDS = 40.0


class Network:
    """A tracker, a standby, a storage node and the peers; all of them stop at the end of the block."""

    def __init__(self, directory: Path, peers: int) -> None:
        self.directory = directory
        self._count = peers
        self._happened = asyncio.Event()
        self._background = Background()
        self.peers: list[Process] = []
        self.tracker: Process
        self.standby: Process
        self.storage: Process
        self._all: list[Process] = []

    async def __aenter__(self) -> Self:
        await self._background.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for process in self._all:
                await process.kill()
        finally:
            await self._background.__aexit__(kind, error, trace)

    async def start(self) -> None:
        """Start all processes; returns when every peer has as many neighbours as it should."""
        trackers = [self._process(name, None, tracker=True) for name in ("tracker-a", "tracker-b")]
        await self._started(trackers)
        contacts = tuple(_address(process) for process in trackers)
        # Which of the two builds this stream's graph follows from their keys.
        first = TrackerChoice(map(parse_contact, contacts)).choose_trackers(topic_of(STREAM))[0]
        trackers.sort(key=lambda process: parse_contact(_address(process)).peer != first.peer)
        self.tracker, self.standby = trackers
        self.tracker.name, self.standby.name = "tracker", "standby"
        self.storage = self._process("storage", None, contacts, stores=True)
        self.peers = [self._process(f"peer {n}", STREAM, contacts) for n in range(1, self._count + 1)]
        await self._started([self.storage, *self.peers])
        degree = min(4, self._count)
        await self.until(
            lambda: all(peer.state is not None and peer.state.neighbors >= degree for peer in self.peers),
            _READY_SECONDS,
            "the peers did not find each other",
        )

    async def restart(self, process: Process) -> None:
        """Start a killed process again, in the same home."""
        await process.start(self._background)

    async def until(self, condition: Callable[[], bool], limit: float, otherwise: str) -> None:
        """Wait until a condition holds; raises `Failure` if it takes too long or a process ends by itself."""
        if not await self.holds(condition, limit):
            raise Failure(f"{otherwise} within {limit:.0f} s")

    async def holds(self, condition: Callable[[], bool], limit: float) -> bool:
        """Wait until a condition holds; False if it takes too long. `Failure` if a process ends by itself."""
        try:
            async with asyncio.timeout(limit):
                while not condition():
                    self._happened.clear()
                    await self._happened.wait()
                    for process in self._all:
                        process.check()
        except TimeoutError:
            return False
        return True

    async def stop(self) -> None:
        """Stop every process in good order."""
        await asyncio.gather(*(process.stop() for process in self._all))

    async def _started(self, processes: list[Process]) -> None:
        for process in processes:
            await process.start(self._background)
        await self.until(
            lambda: all(process.ready is not None for process in processes),
            _READY_SECONDS,
            "not every node was ready",
        )

    def _process(
        self,
        name: str,
        stream: str | None,
        trackers: tuple[str, ...] = (),
        tracker: bool = False,
        stores: bool = False,
    ) -> Process:
        path = self.directory / name.replace(" ", "-")
        config = NodeConfig(
            node=NodeSection(label=name, trackers=trackers),
            tracker=TrackerSection(enabled=tracker),
            storage=(StorageSection(STREAM),) if stores else (),
            trace=_TRACE,
            control=_CONTROL,
        )
        homes.init(path, wall_clock(), config)
        process = Process(name, path, stream, self._happened)
        self._all.append(process)
        return process


def _address(process: Process) -> str:
    if process.ready is None:
        raise Failure(f"{process.name} is not ready")
    return process.ready.address
