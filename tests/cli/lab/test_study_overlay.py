"""The command: errors for what cannot be run. A whole run is in tests/lab/studies/overlay/test_study.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from linnet.cli.app import told
from linnet.cli.lab.studies import overlay

app = typer.Typer()
app.command("overlay")(told(overlay))


@pytest.mark.parametrize(
    ("words", "told_"),
    [
        (("--nodes", "2"), "--nodes"),
        (("--ring-sizes", "many"), "--ring-sizes"),
        (("--data", "nowhere"), "--data"),
    ],
)
def test_what_cannot_be_run_is_named(tmp_path: Path, words: tuple[str, str], told_: str) -> None:
    result = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert told_ in result.output
