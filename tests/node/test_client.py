from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.node.versions import free_port

from linnet.api.items import CaughtUpView, EndedView, EventView, SubscribedView
from linnet.api.node_commands import ExamineGraph, ListPeers, ReadHistory, ReportHealth, ReportStatus
from linnet.core.errors import ConfigError
from linnet.core.ids import Contact, PeerId
from linnet.delivery.commands import Consumed
from linnet.delivery.config import DeliveryConfig
from linnet.identity.text import event_text, person_text
from linnet.net.clock import Clock
from linnet.node.client import ControlClient, ControlError, NodeUnreachable
from linnet.node.config import ControlSection, NodeConfig, StorageSection, TrackerSection
from linnet.node.home import Home, control_token, init
from linnet.peer.interface import Block, Connect
from linnet.streams.commands import Declare, Policy, Publish, Subscribe

STREAM = "weather"
LIMIT = 30


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """The home of a node that runs in a process of its own."""
    config = NodeConfig(
        tracker=TrackerSection(enabled=True),
        storage=(StorageSection(STREAM),),
        control=ControlSection(port=free_port()),
        delivery=DeliveryConfig(history_timeout=0.2),
    )
    home = init(tmp_path_factory.mktemp("client") / "home", Clock().now(), config).home
    code = (
        "import sys; from pathlib import Path; from linnet.node.running import run, run_node;"
        "run(run_node(Path(sys.argv[1]), ready=lambda node: print('ready', flush=True)))"
    )
    command = [sys.executable, "-c", code, str(home.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield home
        process.terminate()
        assert process.wait(LIMIT) == 0


def test_publish_and_read(home: Home) -> None:
    with ControlClient(home.path) as control:
        reader = control.lines(Subscribe(0, STREAM))
        assert isinstance(next(reader), SubscribedView)
        outcome = control.ask(Publish(STREAM, (b"one", b"\xff")))
        events = [next(reader), next(reader)]
        reader.close()
    assert [event.body for event in events if isinstance(event, EventView)] == [b"one", b"\xff"]
    assert [event.id for event in events if isinstance(event, EventView)] == list(
        map(event_text, outcome.ids)
    )


def test_every_other_call(home: Home) -> None:
    device = PeerId(b"x" * 32)
    with ControlClient(home.path) as control:
        status = control.ask(ReportStatus())
        assert control.ask(ListPeers()).peers == status.peers
        control.ask(Block(device))
        assert control.ask(ReportStatus()).blocked == (device,)
        control.ask(Block(device, False))
        control.ask(Connect(Contact(device, ("tls://127.0.0.1:1",))))
        assert control.ask(Declare(f"{person_text(status.person)}/x", Policy(degree=6))).first == 0
        assert all(check.ok for check in control.ask(ReportHealth()).checks)
        assert control.ask(ExamineGraph(control.ask(ReportStatus()).tracked[0])).degree == 4
        assert control.openapi()["openapi"] == "3.1.0"


def test_history_ends(home: Home) -> None:
    with ControlClient(home.path) as control:
        last = list(control.lines(ReadHistory(0, STREAM)))[-2:]
    assert [type(item) for item in last] == [CaughtUpView, EndedView]


def test_manual_acknowledgement_needs_a_second_client(home: Home) -> None:
    with ControlClient(home.path) as control, ControlClient(home.path) as other:
        reader = control.lines(Subscribe(0, STREAM, name="worker"), manual=True)
        first = next(reader)
        assert isinstance(first, SubscribedView)
        other.ask(Publish(STREAM, (b"x",)))
        assert isinstance(next(reader), EventView)
        other.ask(Consumed(first.subscription, 1))
        with pytest.raises(ControlError, match="too_many"):
            other.ask(Consumed(first.subscription, 1))
        reader.close()


def test_a_refusal_says_why_and_what_to_do(home: Home) -> None:
    with ControlClient(home.path) as control:
        with pytest.raises(ControlError) as caught:
            control.ask(Publish("", (b"x",)))
        assert (caught.value.status, caught.value.reason) == (400, "bad_request")
        assert caught.value.hint
        with pytest.raises(ControlError):
            next(control.lines(Subscribe(0, "")))


def test_over_tcp_with_the_token(home: Home) -> None:
    with ControlClient(home.path) as control:
        device = control.ask(ReportStatus()).device
    port = int(home.config.read_text().split("\nport = ")[1].split()[0])
    url = f"http://127.0.0.1:{port}"
    with ControlClient(url=url, token=control_token(home)) as control:
        assert control.ask(ReportStatus()).device == device
    with ControlClient(url=url, token="wrong") as control, pytest.raises(ControlError, match="unauthorized"):
        control.ask(ReportStatus())


def test_no_node(tmp_path: Path) -> None:
    home = init(tmp_path / "home", Clock().now()).home
    with ControlClient(home.path) as control:
        with pytest.raises(NodeUnreachable, match="start one with: linnet up"):
            control.ask(ReportStatus())
        with pytest.raises(NodeUnreachable):
            next(control.lines(Subscribe(0, STREAM)))
    with ControlClient(tmp_path / "none") as control, pytest.raises(NodeUnreachable):
        control.ask(ReportStatus())
    home.config.write_text("[control]\nsocket = 5\n")
    with pytest.raises(ConfigError, match=r"linnet\.toml:2"):
        ControlClient(home.path)
