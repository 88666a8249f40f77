from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as parquet  # type: ignore[import-untyped]
from tests.cli.shell import Linnet

from linnet.cli.sim.streams import AttackKind, JoinOrder
from linnet.sim.attacks.conduct import Conduct
from linnet.sim.attacks.silent_streams import Order

WORDS = ("sim", "streams", "--nodes", "12", "--messages", "6", "--seed", "3")


def test_json_has_what_was_measured(shell: Linnet) -> None:
    found = shell.json(*WORDS, "--degree", "4", "--control", "counter", "--latency", "aws")
    assert (found["nodes"], found["degree_min"], found["degree_max"], found["completeness"]) == (
        12,
        4,
        4,
        1.0,
    )
    assert found["sends_per_message"] == 12 * 4 - 11
    wanted = {"mean_delay_ms", "p99_delay_ms", "estimate_ms", "estimate_all_ms", "max_hops", "trace_sha256"}
    assert wanted <= set(found)


def test_a_table_for_people(shell: Linnet) -> None:
    said = shell.ok(*WORDS, "--near", "--join", "0.5")
    assert "completeness" in said
    assert "trace_sha256" in said


def test_equal_seeds_are_equal_under_any_hash_seed() -> None:
    hashes = set()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "linnet.cli", *WORDS, "--json"],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        hashes.add(json.loads(done.stdout)["trace_sha256"])
    assert len(hashes) == 1


def test_the_trace_is_written(shell: Linnet, tmp_path: Path) -> None:
    file = tmp_path / "run.parquet"
    shell.ok(*WORDS, "--loss", "0.02", "--storage", "1", "--trace", str(file))
    table = parquet.read_table(file)
    assert table.num_rows > 100
    assert {"time", "node", "kind"} <= set(table.column_names)


def test_wrong_input_is_told_in_a_line(shell: Linnet, tmp_path: Path) -> None:
    assert "write mass, or seconds" in shell.fails(2, *WORDS, "--join", "slowly")
    shell.fails(2, "sim", "streams", "--nodes", "1")
    shell.fails(2, "sim", "streams", "--control", "none")
    assert "cannot be written" in shell.fails(1, *WORDS, "--trace", str(tmp_path / "no" / "where.parquet"))
    assert "neither aws, nor constant:MS" in shell.fails(2, *WORDS, "--latency", "martian")


ATTACK = ("sim", "streams", "--nodes", "8", "--messages", "5", "--attack", "silent", "--share", "0.5")


def test_an_attack_is_measured_beside_the_same_run_without_it(shell: Linnet) -> None:
    found = shell.json(*ATTACK, "--order", "before", "--seed", "2")
    assert found["order"] == "before"
    assert found["attackers"] == 8
    figures = found["figures"]
    assert (figures["attack"], figures["share"]) == ("silent", 0.5)
    assert figures["honest_due"] == figures["delivered_without"] == 5 * 7
    said = shell.ok(*ATTACK, "--crowding", "--networks", "2")
    assert "readers that lack events" in said
    assert "there are 8 honest nodes" in shell.fails(2, *ATTACK, "--publishers", "9")


def test_the_command_knows_all_ways_to_behave() -> None:
    assert [each.value for each in AttackKind] == [each.value for each in Conduct]
    assert [each.value for each in JoinOrder] == [each.value for each in Order]
