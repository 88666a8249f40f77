"""Tables are made once, whole or not at all, and known by what they were made from."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from linnet.lab.errors import LabError
from linnet.lab.manifest import FILE, Origin, file_input, read_manifest
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
    made = Workshop(spark, tmp_path).stage("n", NUMBERS, Counting(spark), parameters={"to": 5}, seed=7)
    assert sorted(row.n for row in made.frame.collect()) == [0, 1, 2, 3, 4]
    manifest = read_manifest(tmp_path / "n")
    assert manifest == made.manifest
    assert (manifest.rows, manifest.recipe.parameters, manifest.recipe.seed) == (5, {"to": 5}, 7)
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

    with pytest.raises(RuntimeError):
        workshop.stage("n", NUMBERS, broken, seed=3)
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
