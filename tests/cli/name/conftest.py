"""Alice, Bob and Carol with a relay that keeps their records, each a node in a process of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.name.neighbours import Neighbours
from tests.cli.shell import Linnet
from tests.cli.village import RELAY, up


@contextlib.contextmanager
def neighbour(home: Path, relay: str) -> Iterator[Linnet]:
    shell = Linnet(home)
    shell.ok("init", "--label", home.name)
    config = home / "linnet.toml"
    stores = f'\n[names]\nstores = ["{relay}"]\n'
    config.write_text(config.read_text() + stores)
    with shell.up():
        yield shell


@pytest.fixture(scope="session")
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neighbours]:
    at = tmp_path_factory.mktemp("names")
    with contextlib.ExitStack() as stack:
        relay = stack.enter_context(up(at / "r", *RELAY))
        people = [
            stack.enter_context(neighbour(at / name, relay.address)) for name in ("alice", "bob", "carol")
        ]
        yield Neighbours(relay, *people)
