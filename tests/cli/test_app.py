from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
from tests.cli.shell import Linnet
from typer.testing import CliRunner

from linnet.cli.app import add_deferred, app, group, told
from linnet.cli.exits import EXIT_CODES, Failure

COMMANDS = [
    *((str(each.name),) for each in app.registered_commands),
    *(
        (str(group.name), str(each.name))
        for group in app.registered_groups
        if group.typer_instance is not None
        for each in group.typer_instance.registered_commands
    ),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*words, "--help"])
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert said.startswith("Usage: ")
    assert f"Examples: linnet {' '.join(words)}" in said
    assert " --json " in said
    assert EXIT_CODES in said


def test_the_list_of_commands_fits_a_terminal() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert "..." not in result.stdout.replace("[ARGS]...", "")
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_the_version(shell: Linnet) -> None:
    assert shell.ok("--version") == f"linnet {version('linnet')}\n"


def test_unknown_words_are_wrong_usage() -> None:
    for words in (["nope"], ["status", "extra"], ["sim", "nope"], ["publish", "--nope"]):
        assert CliRunner().invoke(app, words).exit_code == 2


def imported(code: str) -> set[str]:
    """The modules that are there after a piece of code, in a process of its own."""
    told = f"{code}\nimport sys; print('\\n' + ' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


HEAVY = {"httpx", "asyncio", "numpy", "starlette", "cryptography.x509", "pyspark", "linnet.lab", "linnet.sim"}
CALL = "from linnet.cli.app import app\ntry: app({!r})\nexcept SystemExit: pass"


def test_nothing_heavy_is_imported_for_help() -> None:
    found = imported(CALL.format(["--help"]))
    assert not (HEAVY | {"rich", "nacl", "linnet.node"}) & found
    commands = {name for name in found if name.startswith("linnet.cli.") and not name.endswith(".commands")}
    assert commands == {f"linnet.cli.{name}" for name in LISTING}, "no command is imported to be listed"


LISTING = ("app", "exits", "options", "output")


def test_a_command_that_asks_the_node_imports_little_and_no_other_command(tmp_path: Path) -> None:
    found = imported(CALL.format(["status", "--home", str(tmp_path / "none")]))
    assert not (HEAVY | {"rich", "linnet.peer.peer", "linnet.net.driver"}) & found
    assert "linnet.cli.status" in found
    assert not {"linnet.cli.stream.events", "linnet.cli.room.messages", "linnet.cli.lab.workloads"} & found


def test_the_library_imports_what_runs_a_node_when_one_runs() -> None:
    found = imported("from linnet import Node")
    assert (
        not {"linnet.lab", "linnet.sim", "linnet.cli", "linnet.peer.peer", "cryptography.x509", "httpx"}
        & found
    )


def test_errors_are_lines_and_bugs_are_tracebacks(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> None:
        raise Failure("it is broken; mend it")

    def interrupted() -> None:
        raise KeyboardInterrupt

    def buggy() -> None:
        raise ZeroDivisionError

    with pytest.raises(typer.Exit) as one:
        told(fails)()
    assert one.value.exit_code == 1
    assert capsys.readouterr().err == "linnet: it is broken; mend it\n"
    with pytest.raises(typer.Exit) as two:
        told(interrupted)()
    assert two.value.exit_code == 130
    with pytest.raises(ZeroDivisionError):
        told(buggy)()


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "linnet.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("linnet ")


def test_a_command_is_listed_without_being_loaded_and_loaded_to_be_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("linnet.cli.app.told", lambda command: lambda: typer.echo("called"))
    app = group()
    add_deferred(app, "lost", "nowhere:lost", "It is not there.")
    add_deferred(app, "leave", "place.places:leave", "Leave.")
    listed = CliRunner().invoke(app, ["--help"]).stdout
    assert "It is not there." in listed
    assert CliRunner().invoke(app, ["leave"]).stdout == "called\n"
    assert "Exit status" in CliRunner().invoke(app, ["leave", "--help"]).stdout
    assert isinstance(CliRunner().invoke(app, ["lost"]).exception, ModuleNotFoundError)
