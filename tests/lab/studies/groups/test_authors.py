"""The raw measurements of the benchmark, from files that a test wrote."""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from linnet.lab.errors import LabError
from linnet.lab.stages import Workshop
from linnet.lab.studies.groups.authors import TIME, TRAFFIC, Seen, find_authors, read_authors


def written(folder: Path, seed: int = 1) -> dict[tuple[str, int, str], list[int]]:
    """Two files of some runs, and what is in them."""
    random, seen = Random(seed), dict[tuple[str, int, str], list[int]]()
    traffic = ["groupsize,protocol,operation,setupsentbytes,operationsentbytes"]
    times = ["groupsize,protocol,operation,clientrole,setuptime,operationtime"]
    for _ in range(40):
        size, operation = random.choice((8, 16)), random.choice(("add", "update"))
        setup, sent = random.randrange(5000), random.randrange(5000)
        traffic.append(f"{size},FULL,{operation},{setup}.0,{sent}.0")
        seen.setdefault((operation, size, "bytes"), []).append(sent)
        seen.setdefault(("create", size, "bytes"), []).append(setup)
        role = random.choice(("SENDER", "RECIPIENT"))
        first, second = random.randrange(10**8), random.randrange(10**8)
        times.append(f"{size},FULL,{operation},{role},{first / 1e6:.6f},{second / 1e6:.6f}")
        seen.setdefault((operation, size, role.lower()), []).append(second)
        seen.setdefault(("create", size, role.lower()), []).append(first)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TRAFFIC).write_text("\n".join(traffic) + "\n")
    (folder / TIME).write_bytes(gzip.compress(("\n".join(times) + "\n").encode()))
    return seen


def test_runs_are_added_up_as_in_a_plain_loop(spark: SparkSession, tmp_path: Path) -> None:
    expected = written(tmp_path / "data")
    found = read_authors(Workshop(spark, tmp_path / "out"), tmp_path / "data")
    assert found == {
        key: Seen(len(values), sum(values), min(values), max(values)) for key, values in expected.items()
    }
    one = next(iter(found.values()))
    assert one.mean == one.total / one.runs


def test_both_files_are_looked_for_together(tmp_path: Path) -> None:
    assert find_authors(tmp_path) is None
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / TRAFFIC).write_text("")
    assert find_authors(tmp_path) is None
    written(tmp_path / "some" / "below")
    assert find_authors(tmp_path) == tmp_path / "some" / "below"
    written(tmp_path)
    assert find_authors(tmp_path) == tmp_path


def test_other_columns_are_told(spark: SparkSession, tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / TRAFFIC).write_text("size,bytes\n1,2\n")
    with pytest.raises(LabError, match=r"traffic\.csv: its columns are 'size,bytes'"):
        read_authors(Workshop(spark, tmp_path / "out"), tmp_path)
