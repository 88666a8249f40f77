"""Ada seals a stream, bea asks to read it, and a hub tracks and keeps it: each in a process of its own."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.shell import Linnet
from tests.cli.village import LIMIT, LINNET

from linnet.net.clock import Clock


class Diary:
    """The command line of each, and the full name of the stream."""

    def __init__(self, ada: Linnet, bea: Linnet, hub: Linnet, person: str) -> None:
        self.ada, self.bea, self.hub = ada, bea, hub
        self.stream = f"{person}/diary"

    def until(self, holds: Callable[[], bool]) -> None:
        """Look until it holds."""
        clock = Clock()
        limit = clock.now() + LIMIT
        while not holds():
            assert clock.now() < limit


@contextlib.contextmanager
def process(shell: Linnet, *options: str) -> Iterator[Linnet]:
    """The node of a home, in a process."""
    command = [*LINNET, "up", "--home", str(shell.home), "--json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        shell.address = json.loads(running.stdout.readline())["address"]
        try:
            yield shell
        finally:
            running.terminate()
            assert running.wait(20) == 0


@pytest.fixture(scope="session")
def diary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Diary]:
    """A sealed stream that nobody was let into yet."""
    at: Path = tmp_path_factory.mktemp("diary")
    ada, bea, hub = (Linnet(at / name) for name in ("ada", "bea", "hub"))
    person = ada.json("init", "--label", "ada")["person"]
    for shell in (bea, hub):
        shell.ok("init", "--label", shell.home.name)
    kept = ("--store", f"{person}/diary", "--store", f"{person}/journal")
    with process(hub, "--tracker-role", *kept):
        tracker = ("--tracker", hub.address)
        with process(ada, *tracker), process(bea, *tracker):
            ada.ok("declare", "me/diary", "--sealed")
            yield Diary(ada, bea, hub, person)
