"""Two members and a relay, each a node in a process of its own, and a room called `tea`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.cli.shell import Linnet

from linnet.net.clock import Clock

LIMIT = 20.0
RELAY = ("--role", "relay", "--allow", "anyone")
QUICK = "\n[rooms]\nreceipt_delay = 0.05\nannounce_delay = 0.1\n\n[relay]\nstamp_bits = 4\n"


def until(look: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever is looked at
    """Look until something is seen."""
    clock = Clock()
    limit = clock.now() + LIMIT
    while not (seen := look()):
        assert clock.now() < limit
    return seen


class Tea:
    """The command line of each, and the room."""

    def __init__(self, ada: Linnet, bea: Linnet, relay: Linnet) -> None:
        self.ada, self.bea, self.relay = ada, bea, relay
        self.people = {name: each.json("status")["person"] for name, each in (("ada", ada), ("bea", bea))}
        self.room = ada.json("room", "create", "tea", "--topic", "cake")["room"]
        bea.ok("room", "join", ada.ok("room", "invite", "tea").strip())
        self.until(lambda: ada.json("room", "list")["rooms"][0]["online"])

    def another(self, name: str) -> str:
        """A room of both under another name."""
        room = str(self.ada.json("room", "create", name)["room"])
        self.bea.ok("room", "join", self.ada.ok("room", "invite", name).strip())
        return room

    until = staticmethod(until)


def hasten(shell: Linnet) -> None:
    """Let the node of a home that is there tell others sooner."""
    with (shell.home / "linnet.toml").open("a") as config:
        config.write(QUICK)


@contextlib.contextmanager
def up(home: Path, *options: str) -> Iterator[Linnet]:
    """A node in a process."""
    shell = Linnet(home)
    shell.ok("init", "--label", home.name)
    hasten(shell)
    with shell.up(*options):
        yield shell
