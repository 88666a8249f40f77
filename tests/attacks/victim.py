"""A node in a process of its own, with as few descriptors as a test likes, for attackers to work on."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from linnet import Node, NodeConfig, NodeSection, StorageSection, TrackerSection
from linnet.core.ids import Contact
from linnet.core.reasons import Reason
from linnet.identity.addresses import contact_text, parse_contact
from linnet.net.clock import Clock
from linnet.node.home import init

STREAM = "honest"
LIMIT = 30.0
"""Seconds after which what an honest node waits for will not come."""

_PROGRAM = """
import resource, sys
from pathlib import Path
if sys.argv[2] != "0":
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), int(sys.argv[2])))
from linnet.identity.addresses import contact_text
from linnet.node.running import run, run_node
run(run_node(Path(sys.argv[1]), ready=lambda node: print(contact_text(node.contact), flush=True)))
"""


class Victim:
    """Tracker and storage node of one stream."""

    def __init__(self, process: asyncio.subprocess.Process, contact: Contact) -> None:
        self.process = process
        self.contact = contact

    @property
    def hint(self) -> str:
        """Where it listens."""
        return self.contact.hints[0]

    @property
    def lives(self) -> bool:
        """Whether its process runs."""
        return self.process.returncode is None

    @property
    def descriptors(self) -> int:
        """How many descriptors it has open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    @property
    def memory(self) -> int:
        """Bytes of its memory."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * 4096

    async def serves_newcomers(self) -> None:
        """See a newcomer join the stream, publish, and get a receipt of what it published."""
        config = NodeConfig(node=NodeSection(trackers=(contact_text(self.contact),)))
        async with asyncio.timeout(LIMIT), Node(config=config) as node, node.subscribe(STREAM):
            outcome = await node.publish(STREAM, "rain", confirm=LIMIT)
            assert outcome.unconfirmed is None, Reason(outcome.unconfirmed)


@asynccontextmanager
async def victim(home: Path, descriptors: int = 0) -> AsyncIterator[Victim]:
    """Run a victim; 0: with as many descriptors as the system gives."""
    roles = NodeConfig(tracker=TrackerSection(enabled=True), storage=(StorageSection(STREAM),))
    init(home, Clock().now(), roles)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _PROGRAM, str(home), str(descriptors), stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), LIMIT)
        yield Victim(process, parse_contact(line.decode().strip()))
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
