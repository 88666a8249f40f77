"""One real node for all commands: tracker, storage of the stream `kept`, in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.shell import Linnet
from tests.cli.village import Tea, up


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Linnet]:
    """The command line in the home of a running node."""
    shell = Linnet(tmp_path_factory.mktemp("cli") / "node")
    shell.ok("init", "--label", "shared")
    with shell.up("--tracker-role", "--store", "kept"):
        yield shell


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
