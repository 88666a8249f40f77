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


def test_relays_that_lie_beside_those_that_do_not(shell: Linnet) -> None:
    lying = ("sim", "rooms", "--attack", "withhold", "--peers", "4", "--relays", "2", "--messages", "8")
    found = shell.json(*lying)
    figures = found["figures"]
    assert (figures["attack"], figures["share"], figures["honest_due"]) == ("withhold", 0.5, 24)
    assert (figures["delivered"], figures["delivered_without"], found["withheld"]) == (24, 24, 0)
    assert "a liar was caught after, s" in shell.ok(*lying)
    assert "3 of 2 relays cannot lie" in shell.fails(2, *lying, "--liars", "3")
