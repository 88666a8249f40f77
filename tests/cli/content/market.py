"""What tests of the commands about content share."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from tests.cli.shell import Linnet

SETTINGS = "[kademlia]\nenabled = true\nbootstrap = {}\n[content]\nenabled = true\nresend = 0.5\n"


class Market:
    """The command line of two nodes that take part in content."""

    def __init__(self, ada: Linnet, bea: Linnet) -> None:
        self.ada, self.bea = ada, bea

    def keep(self, name: str, predicate: str) -> None:
        """Let bea subscribe under a name, and look until that stands."""
        self.bea.ok("content", "subscribe", predicate, "--name", name, "--detach")
        while not self.bea.json("content", "list")["settled"]:
            pass


@contextlib.contextmanager
def trading(home: Path, *bootstrap: str) -> Iterator[Linnet]:
    """A node of content in a process."""
    shell = Linnet(home)
    shell.ok("init")
    (home / "linnet.toml").write_text(SETTINGS.format(json.dumps(bootstrap)))
    with shell.up():
        yield shell
