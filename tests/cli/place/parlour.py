"""What tests of the commands about places share."""

from __future__ import annotations

from typing import Any

from tests.cli.shell import Linnet


class Parlour:
    """The command line of a host and of a guest."""

    def __init__(self, ada: Linnet, bea: Linnet) -> None:
        self.ada, self.bea = ada, bea
        self.people = {
            name: str(each.json("status")["person"]) for name, each in (("ada", ada), ("bea", bea))
        }
        made = ada.json("place", "host", "tea")
        self.place: str = made["place"]["place"]
        self.address: str = made["address"]
        bea.ok("place", "enter", self.address)

    def hosted(self, name: str, *options: str) -> dict[str, Any]:
        """Another place of ada's."""
        made: dict[str, Any] = self.ada.json("place", "host", name, *options)
        return made
