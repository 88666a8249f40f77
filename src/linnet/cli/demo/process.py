"""A process of the demo as the demo sees it: started, listened to, killed, started again."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

from linnet.cli.demo.messages import Begin, Ready, Report, Resumed, State
from linnet.cli.exits import Failure
from linnet.node.background import Background

ERRORS = "stderr.txt"
_REPORT: msgspec.json.Decoder[Report] = msgspec.json.Decoder(Report)
_STOP_SECONDS = 10.0
_SHOWN_CHARS = 400


class Process:
    """One node in a process of its own."""

    def __init__(self, name: str, home: Path, stream: str | None, happened: asyncio.Event) -> None:
        """Sets `happened` whenever the process says something or ends."""
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
        """Run it; `ready` is set when its node is up."""
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
        """Have it publish."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(msgspec.json.encode(begin) + b"\n")

    async def kill(self) -> None:
        """SIGKILL: nothing of it runs any more when this returns."""
        if self._process is not None and self._process.returncode is None:
            self.is_killed = True
            self._process.kill()
            await self._process.wait()

    async def stop(self) -> None:
        """Let it end in good order; whoever takes too long is killed."""
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
        """Raise `Failure` if it ended and nobody killed it."""
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
