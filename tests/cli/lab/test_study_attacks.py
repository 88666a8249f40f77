"""The command: wrong numbers are told before Spark starts; what it runs is in tests/lab/studies/attacks."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from linnet.cli.app import told
from linnet.cli.lab.studies import attacks

app = typer.Typer()
app.command("attacks")(told(attacks))


@pytest.mark.parametrize(
    ("words", "told_"), [(("--repeats", "0"), "--repeats"), (("--seed", "-1"), "--seed")]
)
def test_wrong_input_is_told(tmp_path: Path, words: tuple[str, ...], told_: str) -> None:
    result = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert told_ in result.stderr
