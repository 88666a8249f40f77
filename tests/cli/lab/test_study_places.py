"""The command: errors for what cannot be run. A whole run is in tests/lab/studies/places/test_study.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from linnet.cli.app import told
from linnet.cli.lab.studies import places

app = typer.Typer()
app.command("places")(told(places))


def typed(*words: str) -> Result:
    return CliRunner().invoke(app, [*words])


@pytest.mark.parametrize(
    ("words", "told_"),
    [(("--logs", "0"), "--logs"), (("--fragments", "-1"), "--fragments"), (("--ids", "none"), "--ids")],
)
def test_wrong_input_is_told(tmp_path: Path, words: tuple[str, ...], told_: str) -> None:
    result = typed(*words, "--out", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert told_ in result.stderr
