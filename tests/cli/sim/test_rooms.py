from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as parquet  # type: ignore[import-untyped]
from tests.cli.shell import Linnet

WORDS = ("sim", "rooms", "--peers", "4", "--relays", "1", "--messages", "10", "--bans", "1", "--seed", "3")


def test_json_has_what_was_measured(shell: Linnet) -> None:
    found = shell.json(*WORDS)
    assert (found["delivered_share"], found["unauthorised_delivered"], found["distinct_states"]) == (
        1.0,
        0,
        1,
    )
    assert (found["causal_violations"], found["ledger_wrong"]) == (0, 0)
    assert {"soft_failed", "first_return_share", "trace_sha256"} <= set(found)
    assert found["trace_sha256"] == shell.json(*WORDS)["trace_sha256"]


def test_a_table_for_people(shell: Linnet) -> None:
    said = shell.ok(*WORDS, "--relays", "0", "--loss", "0.01", "--partition", "5")
    assert "delivered by the end" in said
    assert "trace_sha256" in said


def test_the_trace_is_written(shell: Linnet, tmp_path: Path) -> None:
    file = tmp_path / "run.parquet"
    shell.ok(*WORDS, "--trace", str(file))
    assert parquet.read_table(file).num_rows > 100
    assert "cannot be written" in shell.fails(1, *WORDS, "--trace", str(tmp_path / "no" / "where.parquet"))


def test_wrong_input_is_told_in_a_line(shell: Linnet) -> None:
    shell.fails(2, "sim", "rooms", "--peers", "1")
    shell.fails(2, "sim", "rooms", "--offline", "1.5")
    assert "neither aws, nor constant:MS" in shell.fails(2, *WORDS, "--latency", "martian")
