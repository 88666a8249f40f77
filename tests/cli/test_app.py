from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest
import typer
from tests.cli.shell import Linnet
from typer.testing import CliRunner

from linnet.cli.app import app, told
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


def test_nothing_heavy_is_imported_for_help() -> None:
    code = (
        "import sys, linnet.cli.app;"
        "heavy = {'httpx', 'asyncio', 'rich', 'numpy', 'cryptography', 'nacl', 'starlette', 'linnet.node'};"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


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
