"""Worker processes as a measurement sees them: started, ordered, listened to, and always ended."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from types import TracebackType
from typing import BinaryIO, Self, TypeVar, cast

import msgspec
from msgspec import Struct

from bench.machine import resident_bytes
from bench.results import Measure
from bench.workers.talk import Order, Report

R = TypeVar("R")

LIMIT = 60.0
"""Seconds after which what a worker should say will not come."""

_REPORTS: msgspec.json.Decoder[Report] = msgspec.json.Decoder(Report)
_SHOWN_CHARS = 2000


class WorkerFailed(Exception):
    """A worker ended, said something else, or said nothing for too long."""


def failure(section: str, name: str, error: WorkerFailed) -> Measure:
    """What stands where a figure should: the last thing that was said."""
    return Measure(section, name, "", (), f"failed: {str(error).splitlines()[-1]}", failed=True)


class Worker:
    """One process; made by `Crew.start`."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, errors: BinaryIO) -> None:
        self.name = name
        self._process = process
        self._errors = errors

    @property
    def resident_bytes(self) -> int | None:
        """Memory that it holds."""
        return resident_bytes(self._process.pid)

    def order(self, order: Order) -> None:
        """Tell it what to do next."""
        if self._process.stdin is not None:
            self._process.stdin.write(msgspec.json.encode(order) + b"\n")

    async def hear(self, sort: type[R], limit: float = LIMIT) -> R:
        """The next thing that it says, which has to be of this sort."""
        if self._process.stdout is None:
            raise WorkerFailed(f"{self.name} cannot be heard")
        try:
            async with asyncio.timeout(limit):
                line = await self._process.stdout.readline()
        except TimeoutError:
            raise WorkerFailed(f"{self.name} said nothing for {limit:.0f} s{self._last_words()}") from None
        report = _REPORTS.decode(line) if line else None
        if not isinstance(report, sort):
            raise WorkerFailed(f"{self.name} should say {sort.__name__}, not {report}{self._last_words()}")
        return report

    async def end(self) -> None:
        """Kill it; nothing of it runs any more when this returns."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        self._errors.close()

    def _last_words(self) -> str:
        self._errors.seek(0)
        words = self._errors.read().decode(errors="replace").strip()
        return f"\n{words[-_SHOWN_CHARS:]}" if words else ""


class Crew:
    """The workers of one measurement; all of them end with the block."""

    def __init__(self) -> None:
        self._workers: list[Worker] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*(worker.end() for worker in self._workers))

    async def start(self, module: str, role: Struct) -> Worker:
        """Run ``bench.workers.<module>`` in a process of its own."""
        errors = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - closed with its worker
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            f"bench.workers.{module}",
            msgspec.json.encode(role).decode(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
        worker = Worker(f"{module} {len(self._workers)}", process, errors)
        self._workers.append(worker)
        return worker
