"""One real node for all commands: tracker, storage of the stream `kept`, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.shell import Linnet
from tests.cli.village import LINNET, Tea, up

__all__ = ["LINNET"]


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Linnet]:
    """The command line in the home of a running node."""
    home = tmp_path_factory.mktemp("cli") / "node"
    shell = Linnet(home)
    shell.ok("init", "--label", "shared")
    command = [*LINNET, "up", "--home", str(home), "--tracker-role", "--store", "kept", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        shell.address = ready["address"]
        try:
            yield shell
        finally:
            process.terminate()
            assert process.wait(20) == 0


@pytest.fixture(scope="session")
def tea(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tea]:
    """Two members of a room, and a relay, each in a process of its own."""
    at = tmp_path_factory.mktemp("tea")
    relay_role = ("--role", "relay", "--allow", "anyone")
    with up(at / "ada") as ada, up(at / "bea") as bea, up(at / "r", *relay_role) as relay:
        yield Tea(ada, bea, relay)


@pytest.fixture
def shell(tmp_path: Path) -> Linnet:
    """The command line in a home that is not there yet."""
    return Linnet(tmp_path / "home")


@pytest.fixture(autouse=True)
def _no_home_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LINNET_HOME", os.fspath(tmp_path / "nobody"))
    monkeypatch.delenv("LINNET_PASSPHRASE", raising=False)
