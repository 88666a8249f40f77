"""Ada seals a stream, bea asks to read it, and a hub tracks and keeps it: each in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.shell import Linnet
from tests.cli.village import until


class Diary:
    """The command line of each, and the full name of the stream."""

    def __init__(self, ada: Linnet, bea: Linnet, hub: Linnet, person: str) -> None:
        self.ada, self.bea, self.hub = ada, bea, hub
        self.stream = f"{person}/diary"

    until = staticmethod(until)


@pytest.fixture(scope="session")
def diary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Diary]:
    """A sealed stream that nobody was let into yet."""
    at: Path = tmp_path_factory.mktemp("diary")
    ada, bea, hub = (Linnet(at / name) for name in ("ada", "bea", "hub"))
    person = ada.json("init", "--label", "ada")["person"]
    for shell in (bea, hub):
        shell.ok("init", "--label", shell.home.name)
    kept = ("--store", f"{person}/diary", "--store", f"{person}/journal")
    with hub.up("--tracker-role", *kept):
        tracker = ("--tracker", hub.address)
        with ada.up(*tracker), bea.up(*tracker):
            ada.ok("declare", "me/diary", "--sealed")
            yield Diary(ada, bea, hub, person)
