"""A node that allows one topic on every network that it is on, and says whom it sees: a program for tests."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
from random import Random

from linnet.core.hello import Hello
from linnet.core.ids import PeerId, TopicId
from linnet.core.inputs import Asked
from linnet.edge.commands import AllowOnNetwork, ExamineLan, LanStatus
from linnet.edge.config import PresenceConfig
from linnet.machine.commands import Done
from linnet.net.clock import Clock
from linnet.net.config import LanConfig, NetConfig
from linnet.net.driver import Driver, default_transports
from linnet.peer.config import PeerConfig
from linnet.peer.interface import Effect, Input, Start, Stop
from linnet.peer.peer import Peer
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity
from linnet.trace.records import Record

TOPIC = TopicId(b"t" * 32)
QUICK = PresenceConfig(period=0.5, expiry=4.0, doubt=3.0, patience=0.5, retry=0.5, reply_pause=0.2)
"""As in the field, many times as fast: tests wait for silence to be noticed. Silence is long enough that a
process which gets no processor for seconds is not taken to be gone."""


class Stirred:
    """A node machine as it is; whatever happens to it is a reason to look at what it sees."""

    def __init__(self, machine: Peer) -> None:
        self._machine = machine
        self.happened = asyncio.Event()

    @property
    def hello(self) -> Hello:
        """See `Peer`."""
        return self._machine.hello

    def handle(self, event: Input, now: float) -> list[Effect]:
        """See `Peer`."""
        if not isinstance(event, Asked):
            self.happened.set()
        return self._machine.handle(event, now)


class Silent:
    """A trace that is not looked at, but for what went wrong."""

    def write(self, node: PeerId, record: Record, now: float) -> None:
        """See `TraceSink`."""
        if record.reason is not None:
            print(record, file=sys.stderr, flush=True)

    def close(self) -> None:
        """See `TraceSink`."""


async def main(name: str) -> None:
    """Run until standard input ends; a line for each change of what is seen."""
    identity = known_identity(name)
    store = MemoryStore()
    entropy = secrets.token_bytes
    machine = Stirred(Peer(PeerConfig(lan=QUICK), identity, store, Random(name), entropy=entropy))
    listening = LanConfig(scan_period=0.25)
    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    ended.add_done_callback(lambda _: machine.happened.set())
    driving = Driver(
        machine,
        identity.device,
        store,
        Silent(),
        default_transports(identity.device, NetConfig()),
        [],
        NetConfig(),
        lambda _: None,
        Clock(),
        lan=listening,
    )
    async with driving as driver:
        await driver.ask(Start())
        print(json.dumps({"peer": identity.peer.hex()}), flush=True)
        before = ""
        while not ended.done():
            machine.happened.clear()
            status = await driver.ask(ExamineLan())
            assert isinstance(status, LanStatus)
            for each in status.networks:
                if not each.topics:
                    assert await driver.ask(AllowOnNetwork(TOPIC, each.network, True)) == Done()
            seen = {
                each.name: sorted([contact.device.hex(), *sorted(contact.hints)] for contact in each.peers)
                for each in status.networks
                if each.is_here
            }
            if (line := json.dumps(seen)) != before:
                before = line
                print(line, flush=True)
            await machine.happened.wait()
        await driver.ask(Stop())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
