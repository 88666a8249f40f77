from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from linnet.cli.app import app

SIM = ["sim", "content"]
FEW = [*SIM, "--nodes", "20", "--seed", "3"]


def test_json_has_what_was_measured_and_a_table_the_same() -> None:
    run = CliRunner().invoke(app, [*FEW, "--json"])
    assert run.exit_code == 0
    found = json.loads(run.stdout)
    assert (found["missing"], found["false_positives"], found["rendezvous_disagreements"]) == (0, 0, 0)
    assert {"expected", "duplicates_share", "mean_latency_ms", "trace_sha256"} <= set(found)
    table = CliRunner().invoke(app, FEW)
    assert table.exit_code == 0
    assert found["trace_sha256"] in table.stdout.replace("\n", "")


def test_a_trace_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    run = CliRunner().invoke(app, [*FEW, "--trace", str(tmp_path / "none" / "run.parquet")])
    assert run.exit_code != 0


def test_variants_and_scenarios_that_there_are_not_are_refused() -> None:
    for option in ("--variant", "--scenario"):
        assert CliRunner().invoke(app, [*FEW, option, "other"]).exit_code != 0


def test_what_is_missing_ends_in_a_failure_and_is_named() -> None:
    run = CliRunner().invoke(app, [*SIM, "--nodes", "60", "--contacts", "4", "--no-confirm"])
    assert run.exit_code == 1
    assert "misses" in run.output


def test_crashes_and_backups_are_chosen() -> None:
    chosen = ["--scenario", "fault", "--backups", "1", "--crashes", "1", "--place", "4"]
    run = CliRunner().invoke(app, [*FEW, *chosen, "--json"])
    assert run.exit_code == 0
    found = json.loads(run.stdout)
    assert (found["crashed"], found["missing"], found["untold"]) == (1, 0, 0)
