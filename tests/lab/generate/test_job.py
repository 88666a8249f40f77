"""The whole way at a small size: exact totals, published marks, one hash."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from linnet.lab.errors import LabError
from linnet.lab.generate.job import Wanted, generate
from linnet.lab.generate.plan import Granularity
from linnet.lab.stages import Workshop, open_table
from linnet.lab.tables import MESSAGES

WANTED = Wanted(chats=120, messages=60_000, seed=4)


def test_generated_chats_meet_the_published_marks(spark: SparkSession, tmp_path: Path) -> None:
    workshop = Workshop(spark, tmp_path)
    done = generate(workshop, WANTED)
    assert (done.messages.rows, done.chats.rows) == (60_000, 120)
    marks = {figure.id: figure.measured for figure in done.figures}
    for name, percent in [("members.2", 42), ("members.30", 83), ("pauses.60s", 69), ("pauses.120s", 76)]:
        print(f"{name}: published {percent}, generated {marks[name]}")
        assert marks[name] == pytest.approx(percent, abs=3)
    assert marks["members.largest"] == 252
    assert marks["granularity.s"] == pytest.approx(26.83, abs=0.5)
    assert open_table(spark, tmp_path / "messages", MESSAGES).frame.select("chat").distinct().count() == 120

    again = generate(later := Workshop(spark, tmp_path), WANTED)
    assert again.data_sha256 == done.data_sha256
    assert all(cost.reused for cost in later.costs)


def test_the_hash_is_by_the_seed(spark: SparkSession, tmp_path: Path) -> None:
    def sha256(name: str, seed: int, granularity: Granularity) -> str:
        wanted = Wanted(chats=10, messages=900, seed=seed, granularity=granularity)
        return generate(Workshop(spark, tmp_path / name), wanted).data_sha256

    first = sha256("a", 1, Granularity.PUBLISHED)
    assert sha256("b", 1, Granularity.PUBLISHED) == first == WRITTEN_DOWN
    assert len({first, sha256("c", 2, Granularity.PUBLISHED), sha256("d", 1, Granularity.SECONDS)}) == 3


WRITTEN_DOWN = "ffdc8c995341ec4388f2d1a902625d9017599845f0918a32d5823c088cf7709a"


def test_rows_that_were_not_planned_are_found(spark: SparkSession, tmp_path: Path) -> None:
    wanted = Wanted(chats=3, messages=400, seed=1)
    generate(Workshop(spark, tmp_path), wanted)
    (tmp_path / "chats" / "_manifest.json").unlink()
    parts = sorted((tmp_path / "messages").glob("part-*"))
    (tmp_path / "messages" / "part-again.parquet").write_bytes(parts[0].read_bytes())
    with pytest.raises(LabError, match="has 800 rows, and 400 were written"):
        generate(Workshop(spark, tmp_path), wanted)


def test_what_cannot_be_is_told_before_any_work(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="who write at least once"):
        generate(Workshop(spark, tmp_path), Wanted(chats=10, messages=10))
    assert not list(tmp_path.iterdir())
