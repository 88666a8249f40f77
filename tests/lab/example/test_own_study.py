"""The example of docs/lab/write-your-own-study.md: it runs, it counts right, and the page quotes it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random

import pytest
from examples.study_chars.metrics import pooled
from examples.study_chars.run import LENGTHS, lengths
from examples.study_chars.study import Parameters, study
from examples.study_chars.workload import texts
from pyspark.sql import DataFrame, SparkSession

from linnet.lab import bins
from linnet.lab.report.published import read_published
from linnet.lab.report.writing import write_report
from linnet.lab.stages import Workshop, schema_of
from linnet.lab.tables import MESSAGES

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "study_chars"
PAGE = ROOT / "docs" / "lab" / "write-your-own-study.md"


def some_messages(seed: int, count: int = 300) -> list[tuple[str, int, str, int, str, str]]:
    luck = Random(seed)
    return [
        (
            f"chat{luck.randrange(5)}",
            turn,
            "ada",
            luck.randrange(400),
            luck.choice(["text", "text", "image"]),
            "ms",
        )
        for turn in range(count)
    ]


def frame(spark: SparkSession, rows: list[tuple[str, int, str, int, str, str]]) -> DataFrame:
    return spark.createDataFrame(rows, schema_of(MESSAGES))


def test_the_transforms_count_as_plain_python_does(spark: SparkSession) -> None:
    rows = some_messages(seed=1)
    made = lengths(texts(frame(spark, rows)))
    expected: dict[int, int] = {}
    for _, _, _, chars, kind, _ in rows:
        if kind == "text":
            bin = max(b for b in range(-1, 400) if bins.lower(b) <= chars) if chars else 0
            expected[bin] = expected.get(bin, 0) + 1
    assert pooled(made) == expected
    assert made.groupBy(*LENGTHS.grain).count().where("count > 1").count() == 0


def test_the_study_runs_from_messages_to_report(spark: SparkSession, tmp_path: Path) -> None:
    rows = some_messages(seed=2)
    Workshop(spark, tmp_path / "chats").stage("messages", MESSAGES, lambda: frame(spark, rows))
    said: list[str] = []
    for _ in range(2):
        report = study(
            Workshop(spark, tmp_path / "out", said.append), Parameters(tmp_path / "chats"), said.append
        )
        write_report(report, tmp_path / "out")
    assert said == ["lengths", "report", "report"]  # the second time the table stood
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    chars = sorted(row[3] for row in rows if row[4] == "text")
    median, over_100, messages = (figure["measured"] for figure in summary["figures"])
    assert median == pytest.approx(chars[(len(chars) - 1) // 2], rel=1 / 32)
    assert over_100 == pytest.approx(100 * sum(length > 100 for length in chars) / len(chars), abs=1)
    assert messages == len(chars)
    assert summary["ok"] is True
    assert summary["figures"][0]["published"] == 20
    assert (tmp_path / "out" / "report.html").read_text().count("<svg") == 1


def test_every_published_figure_is_used() -> None:
    """As a study would test it: what nobody asked for is not compared with anything."""
    published = read_published("examples.study_chars")
    source = (EXAMPLE / "report.py").read_text()
    for id in re.findall(r'published\.figure\("([^"]+)"', source):
        published[id]
    assert published.unused() == []


@pytest.mark.parametrize("file", sorted(path.name for path in EXAMPLE.iterdir() if path.is_file()))
def test_the_page_quotes_the_example_as_it_stands(file: str) -> None:
    text = (EXAMPLE / file).read_text().strip()
    assert file == "__init__.py" or text in PAGE.read_text()
