"""The network of the demo: homes, processes, who is tracker and who stands by."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from linnet.cli.demo.process import Process
from linnet.cli.exits import Failure
from linnet.cli.moments import wall_clock
from linnet.node import home as homes
from linnet.node.addresses import parse_contact
from linnet.node.background import Background
from linnet.node.config import (
    ControlSection,
    NodeConfig,
    NodeSection,
    StorageSection,
    TraceSection,
    TrackerSection,
)
from linnet.overlay.registry import Registry
from linnet.streams.stream_names import topic_of
from linnet.trace.records import Level

STREAM = "demo"

_TRACE = TraceSection(level=Level.FULL, max_bytes=256 * 1024 * 1024, flush_seconds=0)
"""One file holds a whole run: nothing of it is rotated away, and nothing dies with a process."""

_CONTROL = ControlSection(enabled=False)
_READY_SECONDS = 40.0


class Network:
    """One tracker, one standby, one storage node and the peers; all of them end with the block."""

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
        """Start everything; returns when every peer is linked to as many others as it should be."""
        trackers = [self._process(name, None, tracker=True) for name in ("tracker-a", "tracker-b")]
        await self._started(trackers)
        contacts = tuple(_address(process) for process in trackers)
        # Which of the two builds this stream's graph follows from their keys.
        first = Registry(map(parse_contact, contacts)).trackers(topic_of(STREAM))[0]
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
        """Start a process that was killed once more, in the same home."""
        await process.start(self._background)

    async def until(self, condition: Callable[[], bool], limit: float, otherwise: str) -> None:
        """Wait until something holds; `Failure` if it takes too long or a process ends by itself."""
        if not await self.holds(condition, limit):
            raise Failure(f"{otherwise} within {limit:.0f} s")

    async def holds(self, condition: Callable[[], bool], limit: float) -> bool:
        """Whether something comes to hold in time; `Failure` if a process ends by itself."""
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
        """Let every process end in good order."""
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
