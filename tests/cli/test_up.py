from __future__ import annotations

import json
import signal
import socket
import subprocess

import pytest
from tests.cli.shell import LINNET, Linnet

from linnet.core.errors import ConfigError
from linnet.identity.text import Sort, to_text
from linnet.node.config import NodeConfig
from linnet.node.start_options import Role, StartOptions
from linnet.overlay.config import Overlay
from linnet.rooms.config import RelayPolicy

DEVICE = to_text(Sort.DEVICE, bytes(32))
TRACKER = f"{DEVICE}@192.0.2.7:7700"


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


def _run(shell: Linnet, *options: str) -> tuple[list[str], str]:
    """What a start says until it is ready, and beside it; it is stopped then."""
    command = [*LINNET, "up", "--home", str(shell.home), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline()]
        while said[-1] and not said[-1].startswith("ready"):
            said.append(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    return said, err


def _started(shell: Linnet, *options: str) -> list[str]:
    return _run(shell, *options)[0]


def test_the_port_is_the_same_at_the_next_start_and_it_is_said_if_it_is_not(shell: Linnet) -> None:
    shell.ok("init")

    def started() -> tuple[str, str]:
        said, told = _run(shell)
        return said[0].split()[1], told

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


def test_a_start_without_options_is_like_the_last_one_with_some(shell: Linnet) -> None:
    shell.ok("init")
    assert len(_started(shell, "--role", "tracker", "--overlay", "ring")) == 2
    for _ in range(2):
        address, options, _ = _started(shell)
        assert options == "options --role tracker --overlay ring, as at the last start\n"
    assert "kept from the last start: --role tracker --overlay ring" in shell.ok("doctor")
    assert _started(shell, "--role", "tracker")[0] == address, "the port is kept as ever"
    assert _started(shell)[1] == "options --role tracker, as at the last start\n", (
        "the newest replace the older"
    )
    assert len(_started(shell, "--fresh")) == 2
    assert len(_started(shell)) == 2


def test_options_of_a_start_that_failed_are_not_kept(shell: Linnet, running: Linnet) -> None:
    shell.ok("init")
    shell.fails(1, "up", "--listen", running.address.rpartition("/")[2])
    assert len(_started(shell)) == 2


def test_options_that_cannot_be_read_stop_the_start(shell: Linnet) -> None:
    shell.ok("init")
    _started(shell, "--role", "tracker")
    for damaged in (b"", b"{", b'{"role":["king"]}', b'{"unknown":1}', b"\xff"):
        (shell.home / "start").write_bytes(damaged)
        assert "linnet up --fresh" in shell.fails(78, "up")
    _started(shell, "--role", "tracker")
    assert (shell.home / "start").stat().st_mode & 0o777 == 0o600


def test_options_are_typed_as_they_are_shown() -> None:
    options = StartOptions(role=(Role.RELAY,), allow=("anyone",), store=("two words",), overlay=Overlay.RING)
    assert str(options) == "--role relay --allow anyone --store 'two words' --overlay ring"


def test_options_add_to_the_file() -> None:
    options = StartOptions(role=(Role.TRACKER,), store=("log", "a/log", "log"), tracker=(TRACKER, TRACKER))
    config = options.add_to(NodeConfig())
    assert config.tracker.enabled
    assert [rule.stream for rule in config.storage] == ["log", "a/log"]
    assert config.node.trackers == (TRACKER,)
    assert options.add_to(config) == config, "what the file says too is not doubled"
    with pytest.raises(ConfigError, match="no host name"):
        StartOptions(listen=("!:1",)).add_to(NodeConfig())


def test_a_port_that_is_taken_is_named(shell: Linnet, running: Linnet) -> None:
    shell.ok("init")
    taken = running.address.rpartition("/")[2]
    said = shell.fails(1, "up", "--listen", taken)
    assert taken in said
    assert json.dumps(said).count("\\n") == 0


def test_a_relay_and_whom_it_serves(shell: Linnet) -> None:
    person = shell.json("init")["person"]
    served = StartOptions(role=(Role.RELAY,), allow=(person,)).add_to(NodeConfig())
    assert (served.relay.enabled, served.relay.allow) == (True, (person,))
    open_to_all = StartOptions(role=(Role.RELAY,), allow=("anyone",)).add_to(NodeConfig())
    assert open_to_all.relay.policy is RelayPolicy.OPEN
    assert StartOptions().add_to(served).relay == served.relay, "what the file says stays"
    with pytest.raises(ConfigError, match=r"relay\.allow"):
        StartOptions(role=(Role.RELAY,), allow=("lp1x",)).add_to(NodeConfig())
    assert "add --role relay" in shell.fails(2, "up", "--allow", person)
    assert "add --role relay" in shell.fails(2, "up", "--allow", "anyone")
    assert "add --role proxy" in shell.fails(2, "up", "--allow", DEVICE)


def test_every_address_needs_one_to_tell() -> None:
    wide = StartOptions(listen=("0.0.0.0:0",), advertise=("relay.example.org:7700",))
    assert wide.add_to(NodeConfig()).advertised == ("tls://relay.example.org:7700",)
    with pytest.raises(ConfigError, match="name in advertise"):
        StartOptions(listen=("0.0.0.0:0",)).add_to(NodeConfig())


def test_nodes_to_begin_with_mean_the_ring_unless_there_are_trackers() -> None:
    begun = (TRACKER,)
    for options, overlay in (
        (StartOptions(), Overlay.TRACKER),
        (StartOptions(bootstrap=begun), Overlay.RING),
        (StartOptions(bootstrap=begun, tracker=begun), Overlay.TRACKER),
        (StartOptions(tracker=begun, overlay=Overlay.RING), Overlay.RING),
    ):
        assert options.add_to(NodeConfig()).node.overlay is overlay
    with pytest.raises(ConfigError, match=r"node\.bootstrap"):
        StartOptions(bootstrap=("nobody",)).add_to(NodeConfig())


def test_the_relay_role_turns_on_what_the_file_says_of_it(shell: Linnet) -> None:
    shell.ok("init")
    with (shell.home / "linnet.toml").open("a") as file:
        file.write('\n[relay]\nhttp = "127.0.0.1:0"\n')
    assert "linnet up --role relay" in shell.fails(78, "up")
    address, ready = _started(shell, "--role", "relay", "--allow", "anyone")
    assert (address.split()[0], ready.split()[0]) == ("address", "ready")


def test_kept_options_that_are_not_used_any_more_are_told(shell: Linnet) -> None:
    shell.ok("init")
    _started(shell, "--role", "relay", "--role", "tracker")
    _, told = _run(shell, "--listen", "127.0.0.1:0")
    assert told == (
        "linnet: kept options that are not used any more: --role relay --role tracker; "
        "to have them back: linnet up --role relay --role tracker --listen 127.0.0.1:0\n"
    )


def test_what_is_typed_anew_is_not_told_as_dropped() -> None:
    kept = StartOptions(role=(Role.RELAY, Role.TRACKER), listen=("127.0.0.1:1",), overlay=Overlay.RING)
    given = StartOptions(role=(Role.RELAY,), listen=("127.0.0.1:2",))
    assert kept.lacking_in(given) == StartOptions(role=(Role.TRACKER,), overlay=Overlay.RING)
    assert str(given.joined(kept.lacking_in(given))) == (
        "--role relay --role tracker --listen 127.0.0.1:2 --overlay ring"
    )
    assert kept.lacking_in(kept) == StartOptions()
