from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as parquet  # type: ignore[import-untyped]
import pytest
from tests.cli.shell import Linnet

from linnet.cli.sim.streams import SHARED, JoinOrder
from linnet.sim.attacks.catalogue import ATTACKS
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
    assert "0.95 at most" in shell.fails(2, *ATTACK[:-1], "1.0")
    assert "there are 8 honest nodes" in shell.fails(2, *ATTACK, "--publishers", "9")


def test_the_command_knows_all_ways_to_behave() -> None:
    assert list(SHARED) == [each.value for each in Conduct]
    assert [each.value for each in JoinOrder] == [each.value for each in Order]


@pytest.mark.parametrize(
    ("way", "name", "share"),
    [("streams", "isolate", 1.0), ("content", "nodes", 0.1), ("places", "keepers", 0.25)],
)
def test_attacks_are_run_by_name(shell: Linnet, way: str, name: str, share: float) -> None:
    found = shell.json("sim", way, "--attack", name, "--seed", "2")
    assert found["share"] == share
    assert found["delivered_without"] == found["honest_due"] > 0
    said = shell.fails(2, "sim", way, "--attack", "nothing")
    assert all(attack.name in said for attack in ATTACKS if attack.way == way)
    assert all(attack.name not in said for attack in ATTACKS if attack.way != way)


def test_somebody_must_be_honest(shell: Linnet) -> None:
    assert "somebody who is honest" in shell.fails(
        2, "sim", "streams", "--attack", "empty-storage", "--share", "1"
    )
