"""``linnet lab audit``: a table, JSON, a status; and the table of the demo."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from linnet.cli.app import told
from linnet.cli.lab.audit import audit
from linnet.lab.audit.synthetic import Shape, synthetic_trace

app = typer.Typer()
app.command("audit")(told(audit))

DEMO = [sys.executable, "-m", "linnet.cli", "demo"]


def typed(*words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--master", "local[2]"])


def test_what_was_lost_is_told_by_table_and_status(spark: SparkSession, tmp_path: Path) -> None:
    shape = Shape(topics=1, readers=3, authors=1, events=40, lost_each=11, dropped_each=13)
    synthetic_trace(spark, shape, 1).write.parquet(str(tmp_path / "trace"))
    words = (str(tmp_path / "trace"), "--out", str(tmp_path / "out"))
    result = typed(*words)
    assert result.exit_code == 1
    assert "were lost without a record" in result.stdout
    assert "does not hold: nothing was lost without a record" in result.stderr
    as_json = typed(*words, "--json")
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout) == json.loads((tmp_path / "out" / "summary.json").read_text())


def test_what_is_no_trace_is_told_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello\n")
    for given in (tmp_path / "notes.txt", tmp_path / "nothing", tmp_path):
        result = typed(str(given), "--out", str(tmp_path / "out"))
        assert result.exit_code != 0
        assert result.stderr.startswith("linnet: ")
    assert not (tmp_path / "out").exists()


def played(kept: Path, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [*DEMO, *words, "--keep", str(kept), "--json"],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    "words", [("--peers", "3", "--messages", "60"), pytest.param((), marks=pytest.mark.soak, id="whole")]
)
def test_the_demo_and_its_audit_come_to_the_same_table(
    spark: SparkSession, tmp_path: Path, words: tuple[str, ...]
) -> None:
    demo = played(tmp_path / "run", *words)
    result = typed(str(tmp_path / "run"), "--out", str(tmp_path / "out"), "--json")
    assert result.exit_code == 0, result.stderr
    tables = {table["title"]: table for table in json.loads(result.stdout)["tables"]}
    readers = tables["Readers"]
    found = {row[0]: dict(zip(readers["columns"], row, strict=True)) for row in readers["rows"]}
    assert set(found) == {peer["peer"].replace(" ", "-") for peer in demo["peers"]}
    for peer in demo["peers"]:
        row = found[peer["peer"].replace(" ", "-")]
        assert row["owed"] == demo["published"]
        for ours, theirs in (("gaps filled", "gaps_filled"), ("reconnects", "reconnects")):
            assert row[ours] == peer[theirs]
        for name in ("delivered", "missing", "duplicates"):
            assert row[name] == peer[name]
        for share in ("p50", "p99"):
            assert row[f"{share} ms"] == peer[f"{share}_ms"]
        assert row["p50 ms"] <= row["p95 ms"] <= row["p99 ms"] <= row["max ms"]
        assert 0 < row["mean ms"] <= row["max ms"]
