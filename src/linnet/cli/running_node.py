"""Access to the node of a home: how commands ask it, and the names of its streams."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from linnet.cli.options import HomeOption, JsonOption, Options
from linnet.cli.output import say, say_json, say_table, warn

if TYPE_CHECKING:
    from linnet.machine.commands import Command
    from linnet.node.client import ControlClient

R = TypeVar("R")

OWN = "me/"
"""The prefix of a stream that belongs to the person of this home."""


@dataclass(frozen=True)
class Session(Options):
    """The options of nearly every command, with ways to ask the node and to print its answer."""

    home: HomeOption = None
    as_json: JsonOption = False

    def open_node(self) -> ControlClient:
        """Return a client of this home's node; `NodeUnreachable` is raised at the first request."""
        from linnet.node.client import ControlClient

        return ControlClient(self.home)

    def ask(self, command: Command[R]) -> R:
        """Ask the node; raises `NodeUnreachable`, or `ControlError` if it declines."""
        with self.open_node() as node:
            return node.ask(command)

    def stream_name(self, stream: str) -> str:
        """The full name of a stream: ``me/x`` is the stream x of this home's person.

        Raises `BadText` if this cannot be the name of a stream.
        """
        from linnet.streams.stream_names import check_name, check_typed, wildcards

        if stream.startswith(OWN):
            stream = f"{_person(self.home)}/{stream.removeprefix(OWN)}"
        check_name(stream)
        check_typed(stream)
        wild = wildcards(stream)
        if wild is not None:
            warn(
                f"linnet: names of streams are literal: {wild!r} in {stream!r} stands for no other name; "
                "to subscribe to whatever has an attribute: linnet content subscribe"
            )
        return stream

    def say(self, result: object, lines: str | Iterable[str]) -> None:
        """Print a result: as JSON for programs, else as these lines."""
        if self.as_json:
            say_json(result)
        else:
            for line in (lines,) if isinstance(lines, str) else lines:
                say(line)

    def say_table(
        self, result: object, columns: Sequence[str], rows: Sequence[Sequence[object]], otherwise: str = ""
    ) -> None:
        """Print a result: as JSON for programs, else as a table, or in words if it has no rows."""
        if rows or not otherwise:
            self.say(result, ())
            if not self.as_json:
                say_table(columns, rows)
        else:
            self.say(result, otherwise)


def _person(home: Path | None) -> str:
    from linnet.identity.text import Sort, to_text
    from linnet.node.home import Home, HomeError, home_path
    from linnet.node.keyfiles import load_card

    at = Home(home_path(home))
    if not at.path.is_dir():
        raise HomeError(f"{at.path}: there is no home, so nobody is me; make one with: linnet init")
    return to_text(Sort.PERSON, load_card(at.card).person)
