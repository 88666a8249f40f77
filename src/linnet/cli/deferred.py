"""Commands that are imported when they are called: a list of all of them costs nothing but their names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup


class Deferred(NamedTuple):
    """Something of a module that is not imported yet."""

    module: str
    name: str

    def load(self) -> Any:  # noqa: ANN401 - whatever is there
        """The thing itself."""
        return getattr(import_module(self.module), self.name)


class Module:
    """A module of commands that is not imported yet; everything in it is `Deferred`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - stands for whatever is there
        return Deferred(self._name, name)


Wrap = Callable[[Callable[..., None]], Callable[..., None]]


def add_deferred(
    to: typer.Typer, name: str, command: Deferred, short: str, epilog: Deferred, wrap: Wrap
) -> None:
    """Put a command into a group whose class is `DeferredGroup`; `wrap` goes around it when it is there."""

    def build() -> Any:  # noqa: ANN401 - typer does not say what it builds
        alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        alone.command(name, short_help=short, epilog=epilog.load())(wrap(command.load()))
        return typer.main.get_command(alone)

    def stands_in() -> None:
        raise RuntimeError(f"{name} was called before it was loaded")

    stands_in.build = build  # type: ignore[attr-defined] # functions can have attributes
    to.command(name, short_help=short)(stands_in)


class DeferredGroup(TyperGroup):
    """A group that loads a command when that is called, and none to list them."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - of typer's own
        """The command of this name, loaded."""
        command = self.commands.get(cmd_name)
        build = getattr(command.callback, "build", None) if command is not None else None
        if build is not None:
            self.commands[cmd_name] = command = build()
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - of typer's own
        """List the commands by what is known of them without loading them."""
        limit = formatter.width - 6 - max(map(len, self.commands))
        rows = [(name, each.get_short_help_str(limit)) for name, each in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


group = functools.partial(
    typer.Typer,
    cls=DeferredGroup,
    no_args_is_help=True,
    # Plain help: it starts faster, and what it shows can be copied.
    rich_markup_mode=None,
)
"""A new group of deferred commands."""
