from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from linnet.cli.app import app

SIM = ["sim", "places"]
FEW = [*SIM, "--guests", "9", "--messages", "6", "--churn", "0.4", "--fanout", "3", "--seed", "3"]


def test_json_has_what_was_measured_and_a_table_the_same() -> None:
    run = CliRunner().invoke(app, [*FEW, "--json"])
    assert run.exit_code == 0
    found = json.loads(run.stdout)
    assert (found["delivered_share"], found["leaked"], found["distinct_state_hashes"]) == (1.0, 0, 1)
    assert {"origin_sends_per_message", "mean_hops", "duplicates_per_message", "trace_sha256"} <= set(found)
    table = CliRunner().invoke(app, FEW)
    assert table.exit_code == 0
    assert found["trace_sha256"] in table.stdout.replace("\n", "")


def test_a_trace_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    run = CliRunner().invoke(app, [*FEW, "--trace", str(tmp_path / "none" / "run.parquet")])
    assert run.exit_code != 0


def test_an_encrypted_place_and_a_policy_that_there_is_not() -> None:
    run = CliRunner().invoke(app, [*SIM, "--guests", "4", "--messages", "3", "--policy", "private", "--json"])
    assert run.exit_code == 0
    found = json.loads(run.stdout)
    assert (found["delivered_share"], found["leaked"]) == (1.0, 0)
    other = CliRunner().invoke(app, [*SIM, "--policy", "secret"])
    assert other.exit_code != 0
