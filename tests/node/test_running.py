from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from linnet.api.node_commands import ReportStatus, StopNode
from linnet.net.clock import Clock
from linnet.node.client import ControlClient, NodeUnreachable
from linnet.node.config import ControlSection, NodeConfig
from linnet.node.home import Home, init
from linnet.node.library import Node
from linnet.node.running import run, run_node
from linnet.streams.commands import Publish, Subscribe

LIMIT = 30
CODE = (
    "import sys; from pathlib import Path; from linnet.node.running import run, run_node;"
    "run(run_node(Path(sys.argv[1]), ready=lambda node: print(node.address, flush=True)))"
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return init(tmp_path / "home", Clock().now()).home


@contextmanager
def running(home: Home) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", CODE, str(home.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def ready(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_in_good_order(home: Home, number: signal.Signals) -> None:
    with running(home) as process:
        assert ready(process).startswith("ld1")
        with ControlClient(home.path) as control:
            reader = control.lines(Subscribe(0, "s"))
            next(reader)
            process.send_signal(number)
            assert [getattr(item, "reason", None) for item in reader] == ["shutdown"]
        _, errors = process.communicate(timeout=LIMIT)
    assert (process.returncode, errors) == (0, "")
    assert not (home.path / "control.sock").exists()


def test_it_stops_when_asked(home: Home) -> None:
    with running(home) as process:
        ready(process)
        with ControlClient(home.path) as control:
            control.ask(StopNode())
        assert process.wait(LIMIT) == 0


def test_a_killed_node_leaves_a_home_that_starts_again(home: Home) -> None:
    with running(home) as process:
        ready(process)
        with ControlClient(home.path) as control:
            assert control.ask(Publish("s", (b"kept",))).first == 0
        process.kill()
        process.wait(LIMIT)
    with ControlClient(home.path) as control, pytest.raises(NodeUnreachable):
        control.ask(ReportStatus())
    with running(home) as process:
        ready(process)
        with ControlClient(home.path) as control:
            assert control.ask(Publish("s", (b"next",))).first == 1
            control.ask(StopNode())
        assert process.wait(LIMIT) == 0
    assert (home.trace / "trace.jsonl").stat().st_size > 0


def test_the_home_of_another_node_is_refused(home: Home) -> None:
    with running(home) as first:
        ready(first)
        with running(home) as second:
            _, errors = second.communicate(timeout=LIMIT)
        assert f"a node runs here already (process {first.pid})" in errors


def test_without_a_control_api_signals_still_work(tmp_path: Path) -> None:
    home = init(tmp_path / "home", Clock().now(), NodeConfig(control=ControlSection(enabled=False))).home

    def stop(node: Node) -> None:
        assert not (home.path / "control.sock").exists()
        os.kill(os.getpid(), signal.SIGTERM)

    async def main() -> None:
        async with asyncio.timeout(LIMIT):
            await run_node(home.path, ready=stop)

    run(main())


def test_the_loop_does_not_call_it_an_error_that_a_peer_was_killed(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        loop = asyncio.get_running_loop()
        closed = "unable to perform operation on <TCPTransport closed=True>; the handler is closed"
        loop.call_exception_handler({"message": "peer killed", "exception": RuntimeError(closed)})
        orphan = {"message": "given up", "exception": ConnectionResetError(), "future": loop.create_future()}
        loop.call_exception_handler(orphan)
        reset = {"exception": ConnectionResetError(104, "reset"), "future": loop.create_future()}
        loop.call_exception_handler({"message": "of a socket", **reset})
        loop.call_exception_handler({"message": "another", "exception": RuntimeError("closed")})
        loop.call_exception_handler({"message": "a bug", "exception": ValueError(closed)})
        loop.call_exception_handler({"message": "no error"})

    run(fail())
    told = [record.message.splitlines()[0] for record in caplog.records]
    assert told == ["of a socket", "another", "a bug", "no error"]


def test_uvloop_says_so_in_these_words() -> None:
    """If another version has others, they are to be learnt."""
    uvloop = pytest.importorskip("uvloop")

    async def write_to_a_closed_transport() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        transport, _ = await loop.create_connection(asyncio.Protocol, *address)
        transport.abort()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match=r"; the handler is closed$"):
            transport.write(b"x")
        server.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(write_to_a_closed_transport())
