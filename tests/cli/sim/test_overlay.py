from __future__ import annotations

import json

from typer.testing import CliRunner

from linnet.cli.app import app

SIM = ["sim", "overlay"]
WORDS = [*SIM, "--nodes", "16", "--topics", "3", "--subscriptions", "2", "--rounds", "10", "--warmup", "20"]
FEW = [*WORDS, "--events", "1", "--liars", "0.1", "--seed", "3"]


def test_json_has_what_was_measured_and_a_table_the_same() -> None:
    run = CliRunner().invoke(app, [*FEW, "--json"])
    assert run.exit_code == 0
    found = json.loads(run.stdout)
    assert found["causal_violations"] == 0
    assert {
        "hit_ratio",
        "hit_ratio_after_repair",
        "liar_view_share",
        "liar_view_share_peak",
        "connected_topics",
        "mean_degree",
        "mean_hops",
        "duplication",
        "trace_sha256",
    } <= set(found)
    table = CliRunner().invoke(app, FEW)
    assert table.exit_code == 0
    assert found["trace_sha256"] in table.stdout.replace("\n", "")


def test_wrong_input_is_refused() -> None:
    assert CliRunner().invoke(app, [*SIM, "--nodes", "1"]).exit_code == 2
    assert CliRunner().invoke(app, [*SIM, "--liars", "0.9"]).exit_code == 2
