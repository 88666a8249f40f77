"""Tables are made once, whole or not at all, and known by what they were made from."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from msgspec.structs import replace
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from linnet.lab import contents
from linnet.lab.contents import data_files
from linnet.lab.errors import LabError
from linnet.lab.manifest import FILE, Origin, Recipe, file_input, read_manifest, write_manifest
from linnet.lab.spark.shipping import code_version
from linnet.lab.stages import Workshop, open_table
from linnet.lab.tables import MESSAGES, SUBSCRIPTIONS, Table

NUMBERS = Table("numbers", 1, "n BIGINT NOT NULL", ("n",))


def numbers(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(count).withColumnRenamed("id", "n")


class Counting:
    """Builds a table, and counts how often it was asked to."""

    def __init__(self, spark: SparkSession, count: int = 5) -> None:
        self.asked = 0
        self._spark = spark
        self._count = count

    def __call__(self) -> DataFrame:
        self.asked += 1
        return numbers(self._spark, self._count)


def test_a_stage_makes_a_table_with_a_manifest(spark: SparkSession, tmp_path: Path) -> None:
    inputs = [Origin("file", "00")]
    began = time.perf_counter()
    made = Workshop(spark, tmp_path).stage(
        "n", NUMBERS, Counting(spark), inputs=inputs, parameters={"to": 5}, seed=7
    )
    passed = time.perf_counter() - began
    assert sorted(row.n for row in made.frame.collect()) == [0, 1, 2, 3, 4]
    manifest = read_manifest(tmp_path / "n")
    assert manifest == made.manifest
    assert manifest.recipe == Recipe("numbers", 1, tuple(inputs), {"to": 5}, 7, code_version())
    assert manifest.rows == 5
    assert 0 < manifest.seconds < passed
    assert manifest.peak_bytes > 100_000_000
    assert [path.name for path in tmp_path.iterdir()] == ["n"]


def test_the_same_recipe_is_not_followed_twice(spark: SparkSession, tmp_path: Path) -> None:
    build = Counting(spark)
    first = Workshop(spark, tmp_path).stage("n", NUMBERS, build)
    later = Workshop(spark, tmp_path)
    second = later.stage("n", NUMBERS, build)
    assert build.asked == 1
    assert second.manifest == first.manifest
    assert [(cost.name, cost.rows, cost.reused) for cost in later.costs] == [("n", 5, True)]


@pytest.mark.parametrize(
    "change",
    [
        {"parameters": {"to": 6}},
        {"seed": 2},
        {"inputs": [Origin("file", "00")]},
    ],
)
def test_whatever_changes_a_recipe_makes_the_table_anew(
    spark: SparkSession, tmp_path: Path, change: dict[str, object]
) -> None:
    workshop, build = Workshop(spark, tmp_path), Counting(spark)
    first = workshop.stage("n", NUMBERS, build)
    second = workshop.stage("n", NUMBERS, build, **change)  # type: ignore[arg-type]
    assert build.asked == 2
    assert second.digest != first.digest


def test_a_new_input_makes_everything_after_it_anew(spark: SparkSession, tmp_path: Path) -> None:
    build = Counting(spark)
    for seed in (1, 2):
        workshop = Workshop(spark, tmp_path)
        first = workshop.stage("first", NUMBERS, Counting(spark), seed=seed)
        workshop.stage("second", NUMBERS, build, inputs=[first])
    assert build.asked == 2


def test_a_stage_that_was_cut_short_is_made_again(spark: SparkSession, tmp_path: Path) -> None:
    half = tmp_path / ".n.unfinished"
    half.mkdir()
    (half / "part-0.parquet").write_bytes(b"half of it")
    made = Workshop(spark, tmp_path).stage("n", NUMBERS, Counting(spark))
    assert made.rows == 5
    assert not half.exists()


def test_a_stage_that_fails_leaves_what_stood(spark: SparkSession, tmp_path: Path) -> None:
    workshop = Workshop(spark, tmp_path)
    before = workshop.stage("n", NUMBERS, Counting(spark))

    def broken() -> DataFrame:
        raise RuntimeError("no")

    def breaking() -> DataFrame:
        """Breaks while its rows are written."""
        return spark.sql("SELECT IF(id < 3, id, raise_error('no more')) AS n FROM range(5)")

    for build, error in ((broken, "no"), (breaking, "no more")):
        with pytest.raises((RuntimeError, PySparkException), match=error):
            workshop.stage("n", NUMBERS, build, seed=3)
        assert open_table(spark, tmp_path / "n", NUMBERS).manifest == before.manifest


def test_a_frame_that_does_not_fit_its_table_is_our_bug(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"numbers\.n is None"):
        Workshop(spark, tmp_path).stage("n", NUMBERS, lambda: spark.range(3))


def test_opening_says_what_is_wrong(spark: SparkSession, tmp_path: Path) -> None:
    workshop = Workshop(spark, tmp_path)
    workshop.stage("n", NUMBERS, Counting(spark))
    workshop.stage("none", NUMBERS, Counting(spark, 0))
    with pytest.raises(LabError, match="there is no table messages in"):
        open_table(spark, tmp_path / "messages", MESSAGES)
    with pytest.raises(LabError, match="holds numbers of version 1, not subscriptions of version 1"):
        open_table(spark, tmp_path / "n", SUBSCRIPTIONS)
    with pytest.raises(LabError, match="is empty"):
        open_table(spark, tmp_path / "none", NUMBERS)
    (tmp_path / "n" / FILE).write_text("{")
    with pytest.raises(LabError, match="no manifest that can be read"):
        open_table(spark, tmp_path / "n", NUMBERS)


def parquet(folder: Path) -> Path:
    return max(data_files(folder), key=lambda path: path.stat().st_size)


def cut(path: Path) -> None:
    pq.write_table(pq.read_table(path).slice(0, 1), path)


def alter(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)


def repeat(path: Path) -> None:
    rows = pq.read_table(path)
    pq.write_table(pa.concat_tables([rows, rows.slice(0, 1)]), path)


def empty(path: Path) -> None:
    rows = pq.read_table(path)
    kinds = pa.array([None] * rows.num_rows, rows.schema.field("n").type)
    pq.write_table(rows.set_column(0, "n", kinds), path)


def remove(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (
            cut,
            r"the table numbers in .*n has [0-9]+ rows, and 5 were written: bring its files back, or remove",
        ),
        (repeat, r"numbers in .* has 6 rows, and 5 were written"),
        (remove, r"numbers in .* rows, and 5 were written"),
        (alter, r"numbers in .* is not what was written: part-.*\.parquet has changed"),
        (empty, r"numbers in .* is not what was written: part-.*\.parquet has changed"),
    ],
)
def test_a_table_that_was_changed_is_not_believed(
    spark: SparkSession, tmp_path: Path, harm: Callable[[Path], None], words: str
) -> None:
    workshop, build = Workshop(spark, tmp_path), Counting(spark)
    workshop.stage("n", NUMBERS, build)
    harm(parquet(tmp_path / "n"))
    with pytest.raises(LabError, match=words):
        open_table(spark, tmp_path / "n", NUMBERS)
    with pytest.raises(LabError, match=words):
        Workshop(spark, tmp_path).stage("n", NUMBERS, build)
    assert build.asked == 1


def test_a_table_whose_manifest_names_no_files_is_looked_through(spark: SparkSession, tmp_path: Path) -> None:
    """Version 0.1.0 wrote such manifests."""
    folder = tmp_path / "n"
    made = Workshop(spark, tmp_path).stage("n", NUMBERS, Counting(spark))
    write_manifest(folder, replace(made.manifest, parts=()))
    assert open_table(spark, folder, NUMBERS).rows == 5
    repeat(parquet(folder))
    write_manifest(folder, replace(made.manifest, parts=(), rows=6))
    with pytest.raises(LabError, match="one row for each n"):
        open_table(spark, folder, NUMBERS)
    write_manifest(folder, replace(made.manifest, parts=(), rows=6))
    empty(parquet(folder))
    with pytest.raises(LabError, match="must have n in every row"):
        open_table(spark, folder, NUMBERS)


def test_rows_that_break_a_table_are_not_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop = Workshop(spark, tmp_path)
    with pytest.raises(LabError, match="must have n in every row, and 1 of"):
        workshop.stage("n", NUMBERS, lambda: spark.sql("SELECT explode(array(1L, null)) AS n"))
    twice = "SELECT explode(array(7L, 1L, 7L)) AS n"
    with pytest.raises(LabError, match=r"one row for each n, and .* has several for n 7"):
        workshop.stage("n", NUMBERS, lambda: spark.sql(twice))
    monkeypatch.setattr(contents, "HERE", 1)
    with pytest.raises(LabError, match="several for n 7"):
        workshop.stage("n", NUMBERS, lambda: spark.sql(twice))
    assert not (tmp_path / "n").exists()


def test_a_file_is_known_by_its_content(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("same")
    assert file_input(tmp_path / "a" / "file") == file_input(tmp_path / "b" / "file")
    with pytest.raises(LabError, match="cannot be read"):
        file_input(tmp_path / "none")


def test_a_folder_that_cannot_be_made_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match="cannot be written"):
        Workshop(spark, tmp_path / "file" / "out")
