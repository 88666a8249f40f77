"""The stages of an audit: what each is made from, and where it resumes."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession
from tests.lab.audit.homes import Homes

from linnet.lab.audit.audit import Audited, audit
from linnet.lab.audit.pipeline import Parameters
from linnet.lab.stages import Workshop

TABLES = ("trace", "quarantine", "signs", "tally", "nodes", "activity", "links", "chains", "readers")
MORE = ("publications", "arrivals", "delays", "hops", "unserved", "missing", "completeness", "quantiles")


def test_each_table_is_a_stage_with_its_cost(audited: tuple[Audited, Path]) -> None:
    made, out = audited
    assert [stage.name for stage in made.report.stages] == [*TABLES, *MORE]
    for name in (*TABLES, *MORE):
        assert (out / name / "_manifest.json").is_file()


def test_another_grace_makes_only_what_depends_on_it(
    spark: SparkSession, audited: tuple[Audited, Path], homes: Homes, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(audited[1], out)
    told: list[str] = []
    audit(Workshop(spark, out, told.append), [homes.folder], Parameters(grace_ms=0))
    assert told == ["missing", "completeness", "quantiles"]
