"""Nodes as processes in network namespaces, on bridges, with real multicast and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from tests.edge.namespaces import Lab, lab

from linnet.testing.identities import known_identity

pytestmark = pytest.mark.timeout(600)
LIMIT = 240.0
"""Seconds after which what is waited for will not come, on a machine that has hardly any time for us: nothing
is read from how long anything takes."""
PROGRAM = Path(__file__).with_name("lan_node.py")


class LanNode:
    """A process in a namespace."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.peer = known_identity(name).peer.hex()
        self._process = process
        self.seen: dict[str, list[list[str]]] = {}

    @classmethod
    async def start(cls, name: str, space: str) -> LanNode:
        command = ("ip", "netns", "exec", space, sys.executable, str(PROGRAM), name)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        return cls(name, process)

    async def until(self, holds: Callable[[set[str]], bool]) -> None:
        """Wait until this is so of those whom it sees."""
        try:
            async with asyncio.timeout(LIMIT):
                while not holds({peer for peers in self.seen.values() for peer, *_ in peers}):
                    await self._read()
        except TimeoutError as error:
            raise TimeoutError(f"{self.name} sees no other than {self.seen} for {LIMIT:.0f} s") from error

    async def sees(self, *others: LanNode) -> None:
        """Wait until it sees exactly these."""
        wanted = {other.peer for other in others}
        await self.until(lambda seen: seen == wanted)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        assert line, f"{self.name} ended"
        said = json.loads(line)
        if "peer" not in said:
            self.seen = said

    def hints(self, other: LanNode) -> list[str]:
        """Where it would dial another."""
        return [
            hint
            for peers in self.seen.values()
            for peer, *hints in peers
            if peer == other.peer
            for hint in hints
        ]

    async def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(60.0):
                await self._process.communicate()
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


@pytest.fixture
def networks() -> Iterator[Lab]:
    with lab() as made:
        yield made


@contextlib.asynccontextmanager
async def running(**places: str) -> AsyncIterator[list[LanNode]]:
    nodes: list[LanNode] = []
    try:
        for name, space in places.items():
            nodes.append(await LanNode.start(name, space))
        yield nodes
    finally:
        for node in nodes:
            await node.stop()


@pytest.mark.parametrize("family", ["both", "IPv6 alone"])
async def test_three_on_one_network_see_each_other_without_internet(networks: Lab, family: str) -> None:
    home = networks.bridge("home")
    spaces = [networks.space(name) for name in ("a", "b", "c")]
    for number, space in enumerate(spaces, 1):
        networks.plug(space, home, "eth0", f"10.77.0.{number}/24" if family == "both" else None)
    async with running(ann=spaces[0], ben=spaces[1], cat=spaces[2]) as (ann, ben, cat):
        await ann.sees(ben, cat)
        await ben.sees(ann, cat)
        await cat.sees(ann, ben)
        assert all("@[fe80::" in hint or "@10.77.0.2:" in hint for hint in ann.hints(ben))
        await cat.stop()
        await ann.sees(ben)


async def test_two_networks_are_apart_but_for_the_one_on_both(networks: Lab) -> None:
    left, right = networks.bridge("left"), networks.bridge("right")
    a, b, both = networks.space("a"), networks.space("b"), networks.space("both")
    networks.plug(a, left, "eth0", "10.77.0.1/24")
    networks.plug(b, right, "eth0", "10.77.1.1/24")
    networks.plug(both, left, "eth0", "10.77.0.9/24")
    networks.plug(both, right, "eth1", "10.77.1.9/24")
    async with running(ann=a, ben=b, gate=both) as (ann, ben, gate):
        await gate.sees(ann, ben)
        await ann.sees(gate)
        await ben.sees(gate)
        assert len(gate.seen) == 2
        networks.unplug(both, "eth1")
        await gate.sees(ann)
        await ben.sees()
        networks.plug(both, right, "eth1", "10.77.1.9/24")
        await gate.sees(ann, ben)
        await ben.sees(gate)
