"""A TCP proxy before each node, by which all others reach it: it parts nodes, is late, and resets links."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct

LATE = (0.05, 0.4)
"""Seconds by which bytes are late whose packet was lost: TCP sends it again."""
RESETS = 0.05
"""The share of lost packets after which TCP gives the link up."""

SOCKETS = Path("/proc/net/tcp")
"""Where the system tells whose the connections are."""

_PIECE = 64 * 1024
_LIMIT = 10.0


class Link(Struct, eq=False):
    """A connection through a proxy."""

    dialler: str | None
    """None: its process is gone."""
    dialled: str
    writers: list[asyncio.StreamWriter] = []

    def reset(self) -> None:
        """Break it off at both ends."""
        for writer in self.writers:
            writer.transport.abort()


class TcpProxies:
    """The proxies of all nodes, on a thread of their own."""

    def __init__(self, processes: Callable[[], dict[str, int]], luck: Random) -> None:
        """`processes` tells the process of each node that runs: by it a proxy knows who dials."""
        self._processes = processes
        self._luck = luck
        self._servers: dict[str, asyncio.Server] = {}
        self._links: list[Link] = []
        self._side: frozenset[str] | None = None
        self._is_silent = False
        self._loss = 0.0
        self._is_due = False
        """Whether the next packet is lost for certain: a small share of few packets may be none."""
        self._whole = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.passed = 0
        """Bytes that went through."""
        self.refused = 0
        """Links that a partition cut or kept from being made."""
        self.lost = 0
        """Packets that were late, or with which a link ended."""

    def open(self, name: str, port: int, target: int) -> None:
        """Let a node be reached at a port, itself being at another. If it is, this does nothing."""
        self._run(self._open(name, port, target))

    def close(self, name: str) -> None:
        """Let a node's port be closed, as where no process listens."""
        self._run(self._close(name))

    def part(self, side: Iterable[str], *, silent: bool) -> None:
        """Let these reach nobody but each other: links are reset, or if `silent` carry nothing."""
        self._run(self._part(frozenset(side), silent))

    def heal(self) -> None:
        """Let everyone reach everyone again."""
        self._run(self._heal())

    def lose(self, share: float) -> None:
        """Lose this share of packets, and the next one."""
        self._loss = share
        self._is_due = share > 0.0

    def end(self) -> None:
        """Close everything."""
        for name in list(self._servers):
            self.close(name)
        self._run(self._cancel())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_LIMIT)
        self._loop.close()

    def _run(self, what: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(what, self._loop).result(_LIMIT)

    async def _open(self, name: str, port: int, target: int) -> None:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._accept(name, target, reader, writer)

        if name not in self._servers:
            self._servers[name] = await asyncio.start_server(accept, "127.0.0.1", port)

    async def _close(self, name: str) -> None:
        server = self._servers.pop(name, None)
        if server is not None:
            server.close()
        for link in self._links:
            if link.dialled == name:
                link.reset()

    async def _part(self, side: frozenset[str], silent: bool) -> None:
        self._side, self._is_silent = side, silent
        self._whole.clear()
        for link in self._links:
            if self._is_parted(link):
                self.refused += 1
                if not silent:
                    link.reset()

    async def _heal(self) -> None:
        self._side = None
        self._whole.set()

    async def _cancel(self) -> None:
        mine = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not mine]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _is_parted(self, link: Link) -> bool:
        side = self._side
        return side is not None and (link.dialler in side) != (link.dialled in side)

    async def _accept(
        self, name: str, target: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        here, there = writer.get_extra_info("sockname"), writer.get_extra_info("peername")
        link = Link(_owner(there[1], here[1], self._processes()), name, [writer])
        self._links.append(link)
        try:
            if self._is_parted(link):
                self.refused += 1
                if not self._is_silent:
                    return
                await self._whole.wait()
            behind_reader, behind = await asyncio.open_connection("127.0.0.1", target)
            link.writers.append(behind)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._carry(link, reader, behind))
                both.create_task(self._carry(link, behind_reader, writer))
        except (OSError, ExceptionGroup):
            pass  # One end is gone; the other learns of it now.
        finally:
            link.reset()
            self._links.remove(link)

    async def _carry(self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_PIECE):
            if self._is_due or self._luck.random() < self._loss:
                self._is_due = False
                self.lost += 1
                await asyncio.sleep(self._luck.uniform(*LATE))
                if self._luck.random() < RESETS:
                    raise ConnectionResetError
            while self._is_parted(link):
                await self._whole.wait()
            writer.write(data)
            await writer.drain()
            self.passed += len(data)
        raise ConnectionResetError  # Links close as a whole: the other direction is not waited for.


def _owner(local: int, remote: int, processes: dict[str, int]) -> str | None:
    """Whose process a connection of this machine belongs to."""
    for line in SOCKETS.read_text().splitlines()[1:]:
        words = line.split()
        if words[1].endswith(f":{local:04X}") and words[2].endswith(f":{remote:04X}"):
            socket = f"socket:[{words[9]}]"
            return next((name for name, pid in processes.items() if socket in _files(pid)), None)
    return None


def _files(pid: int) -> set[str]:
    found = set()
    try:
        for each in os.scandir(f"/proc/{pid}/fd"):
            found.add(os.readlink(each.path))
    except OSError:  # It ended, or closed a file, while we looked.
        pass
    return found
