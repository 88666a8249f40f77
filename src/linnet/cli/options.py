"""Options and arguments that several commands share, and dataclasses of options."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar, get_type_hints

import typer

from linnet.cli.exits import EXIT_CODES

F = TypeVar("F", bound=Callable[..., None])

HomeOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--home", envvar="LINNET_HOME", metavar="DIR", help="The node's home.", show_default="~/.linnet"
    ),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
StreamArgument: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="STREAM", help="Name of the stream; me/NAME is your own stream NAME."),
]
TextArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="TEXT", help="What to say; - reads it from standard input.")
]
LinesOption: TypeAlias = Annotated[
    bool, typer.Option("--lines", help="Standard input holds one message per line.")
]
FromOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--from", metavar="TIME", help="beginning, now, so long ago (15m, 2h, 7d), or 2026-11-15T09:30."
    ),
]
CountOption: TypeAlias = Annotated[
    int | None, typer.Option("--count", metavar="N", min=1, help="End after N events.")
]
LimitOption: TypeAlias = Annotated[
    int | None, typer.Option("--limit", metavar="N", min=1, help="At most N events.")
]
DurableOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="Durable: go on after the last event that was printed."),
]
TimeoutOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--timeout", metavar="SECONDS", min=0.001, help="End after so long; 1 if --count is not reached."
    ),
]
PatienceOption: TypeAlias = Annotated[
    float,
    typer.Option("--patience", metavar="SECONDS", min=0.1, max=600, help="How long to wait for an answer."),
]


def examples(*lines: str) -> str:
    """Return the end of a command's help: examples as they are typed, and the exit statuses."""
    # The mark keeps the lines of a paragraph separate.
    shown = "\n".join(f"  {line}" for line in lines)
    return f"\b\nExamples:\n{shown}\n\n{EXIT_CODES}"


def with_examples(*lines: str) -> Callable[[F], F]:
    """End the help of a command with these examples."""

    def mark(command: F) -> F:
        vars(command)["epilog"] = examples(*lines)
        return command

    return mark


class Options:
    """The base of dataclasses whose fields are options of the commands that take one."""


def spread_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command in the form that typer needs: with an option for each field of its `Options`."""
    hints = get_type_hints(command, include_extras=True)
    structs = {
        name: kind for name, kind in hints.items() if isinstance(kind, type) and issubclass(kind, Options)
    }
    parameters: list[inspect.Parameter] = []
    for each in inspect.signature(command).parameters.values():
        if (kind := structs.get(each.name)) is None:
            parameters.append(each.replace(annotation=hints[each.name], kind=inspect.Parameter.KEYWORD_ONLY))
        else:
            parameters += _options_of(kind)

    @functools.wraps(command)
    def run(**given: Any) -> None:  # noqa: ANN401 - what was typed
        for name, kind in structs.items():
            given[name] = kind(**{each.name: given.pop(each.name) for each in _options_of(kind)})
        command(**given)

    vars(run)["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _options_of(kind: type[Options]) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    fields = inspect.signature(kind).parameters.values()
    return [each.replace(annotation=hints[each.name], kind=inspect.Parameter.KEYWORD_ONLY) for each in fields]
