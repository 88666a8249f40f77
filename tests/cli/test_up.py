from __future__ import annotations

import json
import signal
import socket
import subprocess

import pytest
from tests.cli.conftest import LINNET
from tests.cli.shell import Linnet

from linnet.cli.exits import Failure
from linnet.cli.up import configured, with_relay, without_trackers
from linnet.core.errors import ConfigError
from linnet.node.config import NodeConfig
from linnet.overlay.config import Overlay
from linnet.rooms.config import RelayPolicy


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_its_address_and_stops_on_a_signal(shell: Linnet, number: signal.Signals) -> None:
    device = shell.json("init")["device"]
    command = [*LINNET, "up", "--home", str(shell.home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(f"address {device}@tls://127.0.0.1:")
        assert process.stdout.readline().startswith("ready")
        assert "runs here already" in shell.fails(78, "up")
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, "", "")


def test_the_port_is_the_same_at_the_next_start_and_it_is_said_if_it_is_not(shell: Linnet) -> None:
    shell.ok("init")
    command = [*LINNET, "up", "--home", str(shell.home), "--json"]

    def started() -> tuple[str, str]:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["address"]
            process.terminate()
            _, told = process.communicate(timeout=20)
        return address, told

    first, _ = started()
    assert started() == (first, "")
    with socket.create_server(("127.0.0.1", int(first.rpartition(":")[2]))):
        second, told = started()
    assert second != first
    assert f"{first.partition('@')[2]} is in use by another program" in told
    assert started() == (second, "")


def test_without_a_home_it_says_what_to_do(shell: Linnet) -> None:
    assert "make one with: linnet init" in shell.fails(78, "up")


def test_a_wrong_configuration_is_named_with_its_line(shell: Linnet) -> None:
    shell.ok("init")
    with (shell.home / "linnet.toml").open("a") as file:
        file.write("\n[trace]\nlevel = 3\n")
    said = shell.fails(78, "up")
    assert "linnet.toml:" in said


def test_options_add_to_the_file(shell: Linnet, running: Linnet) -> None:
    shell.ok("init")
    config = configured(shell.home, True, ["log", "me/log", "log"], ["127.0.0.1:0"], [running.address], True)
    assert config.tracker.enabled
    assert [rule.stream.rpartition("/")[2] for rule in config.storage] == ["log", "log"]
    assert config.node.trackers == (running.address,)
    assert config.trace.level == "full"
    with pytest.raises(ConfigError, match="no host name"):
        configured(shell.home, False, [], ["!:1"], [], False)


def test_a_port_that_is_taken_is_named(shell: Linnet, running: Linnet) -> None:
    shell.ok("init")
    taken = running.address.rpartition("/")[2]
    said = shell.fails(1, "up", "--listen", taken)
    assert taken in said
    assert json.dumps(said).count("\\n") == 0


def test_a_relay_and_whom_it_serves(shell: Linnet) -> None:
    person = shell.json("init")["person"]
    served = with_relay(NodeConfig(), True, [person])
    assert (served.relay.enabled, served.relay.allow) == (True, (person,))
    assert with_relay(NodeConfig(), True, ["anyone"]).relay.policy is RelayPolicy.OPEN
    assert with_relay(served, False, []).relay == served.relay, "what the file says stays"
    with pytest.raises(ConfigError, match=r"relay\.allow"):
        with_relay(NodeConfig(), True, ["lp1x"])
    with pytest.raises(Failure, match="add --role relay"):
        with_relay(NodeConfig(), False, [person])


def test_every_address_needs_one_to_tell(shell: Linnet) -> None:
    shell.ok("init")
    config = configured(shell.home, False, [], ["0.0.0.0:0"], [], False, ["relay.example.org:7700"])
    assert config.advertised == ("tls://relay.example.org:7700",)
    with pytest.raises(ConfigError, match="name in advertise"):
        configured(shell.home, False, [], ["0.0.0.0:0"], [], False)


def test_nodes_to_begin_with_mean_the_ring_unless_there_are_trackers(shell: Linnet, running: Linnet) -> None:
    shell.ok("init")
    plain = configured(shell.home, False, [], [], [], False)
    assert without_trackers(plain, None, []).node.overlay is Overlay.TRACKER
    begun = without_trackers(plain, None, [running.address])
    assert (begun.node.overlay, begun.node.bootstrap) == (Overlay.RING, (running.address,))
    tracked = configured(shell.home, False, [], [], [running.address], False)
    assert without_trackers(tracked, None, [running.address]).node.overlay is Overlay.TRACKER
    assert without_trackers(tracked, Overlay.RING, []).node.overlay is Overlay.RING
    with pytest.raises(ConfigError, match=r"node\.bootstrap"):
        without_trackers(plain, None, ["nobody"])


def test_the_relay_role_turns_on_what_the_file_says_of_it(shell: Linnet) -> None:
    shell.ok("init")
    with (shell.home / "linnet.toml").open("a") as file:
        file.write('\n[relay]\nhttp = "127.0.0.1:0"\n')
    assert "linnet up --role relay" in shell.fails(78, "up")
    command = [*LINNET, "up", "--home", str(shell.home), "--role", "relay", "--allow", "anyone"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("address ")
        assert process.stdout.readline().startswith("ready")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
