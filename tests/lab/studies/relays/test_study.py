"""The whole study: on one process, on a cluster, and after a kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from pyspark.sql import SparkSession
from tests.conftest import SOAK
from tests.lab.spark_cluster import spark_cluster
from tests.lab.studies.relays.small_chats import drawn_messages, frame_of

from linnet.lab.report.writing import write_report
from linnet.lab.stages import Workshop
from linnet.lab.studies.relays.parameters import RelaysParameters
from linnet.lab.studies.relays.study import study
from linnet.lab.tables import MESSAGES, SESSIONS

WITHOUT_SAMPLE = ["inversions", "outcomes", "pooled", "profiles"]
TABLES = [*WITHOUT_SAMPLE, "agreements", "windows", *(f"protocol{margin}" for margin in range(1, 6))]
SAMPLE, WINDOW = 2, 8


def rows_of(folder: Path, tables: Sequence[str] = TABLES) -> dict[str, list[str]]:
    """The tables of a study, row by row, in an order that does not depend on how they were written."""
    found = {}
    for name in tables:
        table = pq.read_table(folder / name)
        found[name] = sorted(json.dumps(row, sort_keys=True) for row in table.to_pylist())
    return found


def command(chats: Path, out: Path, sample: int, master: str) -> list[str]:
    options = ["--sample", str(sample), "--window", str(WINDOW), "--memory", "600m", "--json"]
    options += ["--master", master]
    program = [sys.executable, "-m", "linnet.cli", "lab", "study", "relays"]
    return [*program, "--chats", str(chats), "--out", str(out), *options]


@pytest.fixture(scope="module")
def chats(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chats")
    messages = frame_of(spark, drawn_messages(5, chats=8, most=14))
    Workshop(spark, folder).stage("messages", MESSAGES, lambda: messages)
    return folder


@pytest.fixture(scope="module")
def done(spark: SparkSession, chats: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study in this process."""
    out = tmp_path_factory.mktemp("done")
    report = study(Workshop(spark, out), RelaysParameters(chats=chats, sample=SAMPLE, window=WINDOW))
    assert report.failures() == []
    write_report(report, out)
    return out


def test_the_summary_has_every_figure_and_every_stage(done: Path) -> None:
    summary = json.loads((done / "summary.json").read_text())
    assert summary["ok"] is True
    assert {check["id"] for check in summary["checks"]} == {
        "relays.reach",
        "relays.never-later",
        "relays.undelivered",
        "relays.empty",
        "relays.counted",
        "relays.agreement",
    }
    assert [stage["name"] for stage in summary["stages"]][:4] == [
        "outcomes",
        "profiles",
        "pooled",
        "inversions",
    ]
    assert all(stage["seconds"] > 0 and stage["peak_bytes"] > 0 for stage in summary["stages"])
    ids = {figure["id"] for figure in summary["figures"]}
    assert {"funnel.selected", "undelivered.relays.most", "empty.p2p-thesis.margin3.all"} <= ids
    assert "<svg" in (done / "report.html").read_text()


def test_a_second_run_has_nothing_to_do(spark: SparkSession, chats: Path, done: Path) -> None:
    workshop = Workshop(spark, done)
    study(workshop, RelaysParameters(chats=chats, sample=SAMPLE, window=WINDOW))
    assert [cost.name for cost in workshop.costs if not cost.reused] == []
    assert sorted(cost.name for cost in workshop.costs) == sorted(TABLES)


def test_phones_take_the_place_of_margins(spark: SparkSession, chats: Path, tmp_path: Path) -> None:
    week = 604_800_000
    sessions = [
        (f"d{n}", day * 86_400_000, day * 86_400_000 + 3_600_000 * (n + 1), week)
        for n in range(4)
        for day in range(7)
    ]
    Workshop(spark, tmp_path).stage(
        "sessions", SESSIONS, lambda: spark.createDataFrame(sessions, SESSIONS.columns)
    )
    parameters = RelaysParameters(chats=chats, sessions=tmp_path, sample=0)
    report = study(Workshop(spark, tmp_path / "out"), parameters)
    assert report.failures() == []
    assert {figure.id for figure in report.figures} >= {
        "undelivered.relays.margin0.all",
        "empty.p2p.margin0.all",
    }


@pytest.mark.timeout(900)
def test_a_cluster_of_two_workers_gives_the_same_tables(chats: Path, done: Path, tmp_path: Path) -> None:
    """All of them in a soak: those of the sample are made in the same way, and take longest."""
    sample, tables = (SAMPLE, TABLES) if SOAK else (0, WITHOUT_SAMPLE)
    (tmp_path / "cluster").mkdir()
    with spark_cluster(tmp_path / "cluster") as address:
        out = tmp_path / "out"
        ran = subprocess.run(
            command(chats, out, sample, address), capture_output=True, text=True, check=False, timeout=600
        )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout)["ok"] is True
    assert rows_of(out, tables) == rows_of(done, tables)
    both = [work / "app" for work in (tmp_path / "cluster").glob("work*/app-*")]
    assert len({path.parent.parent for path in both}) == 2, "both workers took part"


@pytest.mark.timeout(900)
def test_a_study_whose_driver_is_killed_goes_on(
    spark: SparkSession, chats: Path, done: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with subprocess.Popen(
        command(chats, out, SAMPLE, "local[2]"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as first:
        until = time.monotonic() + 300
        while not (out / "pooled").exists() and first.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        first.kill()
    assert not (out / "summary.json").exists()
    stood = {name: os.stat(out / name).st_ino for name in ("outcomes", "profiles", "pooled")}
    study(Workshop(spark, out), RelaysParameters(chats=chats, sample=SAMPLE, window=WINDOW))
    assert {name: os.stat(out / name).st_ino for name in stood} == stood, "what stood was not made again"
    assert rows_of(out) == rows_of(done)
