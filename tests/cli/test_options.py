"""Options that go together, and how a command is seen by typer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner, Result

from linnet.cli.app import told
from linnet.cli.exits import EXIT_CODES, ExitCode, Failure
from linnet.cli.options import Options, examples, with_examples
from linnet.cli.running_node import Session

Count = Annotated[int, typer.Option("--count", min=1, help="How many.")]


@dataclass(frozen=True)
class Size(Options):
    """How large something is."""

    width: Annotated[int, typer.Argument(help="How wide.")]
    height: Annotated[int, typer.Option("--height", help="How high.")] = 2


@with_examples("linnet draw 3")
def draw(size: Size, count: Count = 1, *, session: Session) -> None:
    """Draw something."""
    if size.width > 9:
        raise Failure("too wide; draw less", ExitCode.USAGE)
    session.say({"area": size.width * size.height}, f"{count} of {size.width} by {size.height}")


def typed(*words: str) -> Result:
    app = typer.Typer(rich_markup_mode=None)
    app.command(epilog=vars(draw)["epilog"])(told(draw))
    return CliRunner().invoke(app, list(words))


def test_every_field_of_options_is_an_option_of_the_command() -> None:
    assert typed("3").stdout == "1 of 3 by 2\n"
    assert typed("3", "--height", "4", "--count", "2").stdout == "2 of 3 by 4\n"
    assert typed("3", "--json").stdout == '{"area":6}\n'
    assert typed("3", "--count", "0").exit_code == 2
    assert typed().exit_code == 2, "a field without a default has to be given"


def test_help_lists_options_in_their_order_and_ends_with_examples() -> None:
    said = " ".join(typed("--help").stdout.split())
    places = [said.index(word) for word in ("How wide.", "--height", "--count", "--home", "--json")]
    assert places == sorted(places)
    assert "Draw something." in said
    assert said.endswith(f"Examples: linnet draw 3 {EXIT_CODES}")


def test_an_error_is_told_in_a_line() -> None:
    result = typed("10")
    assert (result.exit_code, result.stderr) == (ExitCode.USAGE, "linnet: too wide; draw less\n")


def test_a_command_without_options_of_that_kind_stays_as_it_is() -> None:
    def plain(name: Annotated[str, typer.Argument()] = "nobody") -> None:
        typer.echo(f"hello {name}")

    app = typer.Typer()
    app.command()(told(plain))
    assert CliRunner().invoke(app, ["ada"]).stdout == "hello ada\n"
    assert CliRunner().invoke(app, []).stdout == "hello nobody\n"


def test_examples_are_typed_as_they_stand() -> None:
    assert (
        examples("linnet one", "linnet two") == f"\b\nExamples:\n  linnet one\n  linnet two\n\n{EXIT_CODES}"
    )
