"""``linnet lan``: two nodes of one machine, with its loopback as their local network."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cli.shell import Linnet
from tests.cli.village import LINNET

from linnet.cli.lan import status, switching
from linnet.core.errors import BadText
from linnet.net.interfaces import LOOPBACK, interfaces
from linnet.node.caller import ControlError

LIMIT = 30.0
NAME = next(each.name for each in interfaces() if each.flags & LOOPBACK)


@contextmanager
def up(home: Path, lan: bool = True) -> Iterator[str]:
    """A running node that watches the loopback; gives its device key."""
    device = Linnet(home).json("init")["device"]
    file = home / "linnet.toml"
    if lan:
        file.write_text(f'{file.read_text()}\n[lan]\nenabled = true\ninterfaces = ["{NAME}"]\n')
    command = [*LINNET, "up", "--home", str(home), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield str(device)
        finally:
            process.terminate()
            assert process.wait(20) == 0


class Typed:
    """Commands that are typed, and what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def status(self, home: Path) -> Any:  # noqa: ANN401 - JSON is
        self._capsys.readouterr()
        status.status(home, as_json=True)
        return json.loads(self._capsys.readouterr().out)

    def text(self, home: Path) -> str:
        self._capsys.readouterr()
        status.status(home)
        return self._capsys.readouterr().out


def test_topics_are_allowed_and_denied_and_devices_find_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = Typed(capsys)
    one, two = tmp_path / "one", tmp_path / "two"
    with up(one) as _, up(two) as device:
        assert "nothing is allowed here" in typed.text(one)
        [network] = typed.status(one)["networks"]
        assert (network["here"], network["announced"], network["topics"]) == (True, False, [])
        for home in (one, two):
            switching.allow("weather", home=home)
        end = time.monotonic() + LIMIT
        while device not in typed.text(one):
            assert time.monotonic() < end, typed.status(one)
        [network] = typed.status(one)["networks"]
        assert network["announced"]
        assert [peer["device"] for peer in network["peers"]] == [device]
        assert "1 device met" in typed.text(one)
        switching.deny("weather", network["network"][:6], home=one)
        [network] = typed.status(one)["networks"]
        assert (network["announced"], network["peers"], network["topics"]) == (False, [], [])
        with pytest.raises(BadText, match="no network that is known here"):
            switching.allow("weather", "zz", home=one)
        capsys.readouterr()
        switching.allow(network_topic(typed, two), home=one, as_json=True)
        assert json.loads(capsys.readouterr().out)["topics"] == [network_topic(typed, two)]


def network_topic(typed: Typed, home: Path) -> str:
    """The id of the one topic that is allowed at a node."""
    [network] = typed.status(home)["networks"]
    [topic] = network["topics"]
    return str(topic)


def test_a_node_that_leaves_local_networks_alone_says_how_to_change_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = Typed(capsys)
    with up(tmp_path / "one", lan=False):
        assert "set enabled = true under [lan]" in typed.text(tmp_path / "one")
        assert typed.status(tmp_path / "one") == {"enabled": False, "networks": []}
        with pytest.raises(ControlError, match="enabled = false"):
            switching.allow("weather", home=tmp_path / "one")
