"""Brokers beside us, if they are installed here: no signatures, no TLS, and a server in the middle."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import shutil
import socket
from collections.abc import AsyncIterator
from pathlib import Path

from bench.crew import Crew, WorkerFailed, failure
from bench.fleet import EIGHT, ONE, Fleet, Layout
from bench.network import run_several
from bench.results import Measure, Plan
from bench.workers.broker_client import BrokerRole
from bench.workers.talk import Linked, Ready

SECTION = "brokers"
CLIENT_MODULES = {"mosquitto": "paho", "nats-server": "nats"}
_START_LIMIT = 10.0

ELSEWHERE = (
    Measure(
        SECTION,
        "py-libp2p gossipsub, 1→1",
        "deliveries/s",
        (340.0,),
        "signs; measured elsewhere on such a machine",
    ),
    Measure(
        SECTION,
        "js-libp2p gossipsub, 1→1",
        "deliveries/s",
        (1_630.0,),
        "signs; measured elsewhere on such a machine",
    ),
    Measure(
        SECTION,
        "js-libp2p gossipsub, 1→8",
        "deliveries/s",
        (3_300.0,),
        "signs; measured elsewhere on such a machine",
    ),
)
"""Networks that also sign every message; they are not installed by anything here."""


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def missing(kind: str) -> str | None:
    """What is not installed, server or client; None if a broker can be measured."""
    if shutil.which(kind) is None:
        return f"{kind} is not installed"
    module = CLIENT_MODULES[kind]
    return (
        None
        if importlib.util.find_spec(module) is not None
        else f"the Python client {module} is not installed"
    )


@contextlib.asynccontextmanager
async def broker(kind: str, directory: Path) -> AsyncIterator[int]:
    """The broker of this kind, on a port of the loopback."""
    port = free_port()
    if kind == "mosquitto":
        config = directory / "mosquitto.conf"
        config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n")
        given = ["-c", str(config)]
    else:
        given = ["-a", "127.0.0.1", "-p", str(port)]
    process = await asyncio.create_subprocess_exec(
        kind, *given, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await _started(kind, process, port)
        yield port
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _started(kind: str, process: asyncio.subprocess.Process, port: int) -> None:
    try:
        async with asyncio.timeout(_START_LIMIT):
            while not await _listens(port):
                if process.returncode is not None:
                    raise WorkerFailed(f"{kind} ended by itself with status {process.returncode}")
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise WorkerFailed(f"{kind} does not listen") from None


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def _measure(kind: str, layout: Layout, plan: Plan) -> Measure:
    async with broker(kind, plan.directory) as port, Crew() as crew:
        sender = await crew.start("broker_client", BrokerRole(kind, port, subscribe=False))
        receivers = [
            await crew.start("broker_client", BrokerRole(kind, port, subscribe=True))
            for _ in range(layout.receivers)
        ]
        for worker in (sender, *receivers):
            await worker.hear(Ready)
            await worker.hear(Linked)
        outcomes = await run_several(Fleet(sender, receivers), 1, plan, 4 * plan.seconds)
    rates = tuple(outcome.deliveries_per_second for outcome in outcomes)
    return Measure(SECTION, f"{kind}, {layout.name}", "deliveries/s", rates, "neither TLS nor signatures")


def measure(plan: Plan) -> list[Measure]:
    """Those that are installed; for the others, what is missing."""
    taken: list[Measure] = []
    for kind in CLIENT_MODULES:
        lacking = missing(kind)
        for layout in (ONE, EIGHT):
            name = f"{kind}, {layout.name}"
            if lacking is not None:
                taken.append(Measure(SECTION, name, "deliveries/s", (), lacking))
                continue
            try:
                taken.append(asyncio.run(_measure(kind, layout, plan)))
            except WorkerFailed as error:
                taken.append(failure(SECTION, name, error))
    return [*taken, *ELSEWHERE]
