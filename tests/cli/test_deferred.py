from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from linnet.cli.deferred import Deferred, Module, add_deferred, group


def test_nothing_of_a_module_is_loaded_before_it_is_needed() -> None:
    nowhere = Module("linnet.nowhere")
    assert nowhere.thing == Deferred("linnet.nowhere", "thing")
    with pytest.raises(ModuleNotFoundError):
        nowhere.thing.load()


def test_a_command_is_listed_without_being_loaded_and_loaded_to_be_called() -> None:
    app = group()
    there, nowhere = Module("linnet.cli.exits"), Module("linnet.nowhere")
    add_deferred(app, "lost", nowhere.lost, "It is not there.", nowhere.EPILOG, lambda command: command)
    add_deferred(
        app, "codes", there.ExitCode, "Codes.", there.EXIT_CODES, lambda command: lambda: typer.echo("called")
    )
    listed = CliRunner().invoke(app, ["--help"]).stdout
    assert "It is not there." in listed
    assert CliRunner().invoke(app, ["codes"]).stdout == "called\n"
    assert "Exit status" in CliRunner().invoke(app, ["codes", "--help"]).stdout
    assert isinstance(CliRunner().invoke(app, ["lost"]).exception, ModuleNotFoundError)
