"""Pieces read in tasks: every row arrives once, with its file and line."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql import SparkSession

from linnet.lab.sources import harvest as harvesting
from linnet.lab.sources.harvest import bad_rows, found_batches, good_rows, harvest, without_repeats
from linnet.lab.sources.pieces import Piece
from linnet.lab.sources.rows import Bad, Entry
from linnet.lab.tables import SUBSCRIPTIONS

PIECES = [Piece(str(number), f"file{number}") for number in range(7)]


def drawn(piece: Piece) -> Iterator[Entry | Bad]:
    """Random rows that any process draws alike."""
    draw = random.Random(int(piece.path))
    for line in range(1, draw.randrange(2, 60)):
        if draw.random() < 0.2:
            yield Bad(line, draw.choice(["no", "never"]), "x" * 300)
        else:
            yield Entry(line, (f"s{draw.randrange(5)}", f"t{draw.randrange(20)}"))


def test_every_row_arrives_once(spark: SparkSession) -> None:
    found = harvest(spark, PIECES, drawn, SUBSCRIPTIONS.columns)
    expected = [(piece.shown, each) for piece in PIECES for each in drawn(piece)]
    good = sorted(tuple(row) for row in good_rows(found, SUBSCRIPTIONS).collect())
    assert good == sorted(each.values for _, each in expected if isinstance(each, Entry))
    bad = sorted(tuple(row) for row in bad_rows(found, "test").collect())
    assert bad == sorted(
        ("test", shown, each.line, each.reason, "x" * 200)
        for shown, each in expected
        if isinstance(each, Bad)
    )


def test_of_repeats_the_first_line_is_kept(spark: SparkSession) -> None:
    found = without_repeats(
        harvest(spark, PIECES, drawn, SUBSCRIPTIONS.columns), SUBSCRIPTIONS.grain, "again"
    )
    first: dict[tuple[str | int, ...], tuple[str, int]] = {}
    again, bad = [], 0
    for piece in PIECES:
        for each in drawn(piece):
            if isinstance(each, Bad):
                bad += 1
            elif each.values in first:
                again.append((piece.shown, each.line))
            else:
                first[each.values] = (piece.shown, each.line)
    assert again
    good = [tuple(row) for row in good_rows(found, SUBSCRIPTIONS).collect()]
    assert sorted(good) == sorted(first)
    apart = bad_rows(found, "test").collect()
    assert sorted((row.file, row.line) for row in apart if row.reason == "again") == sorted(again)
    assert len(apart) == len(again) + bad


def test_batches_are_bounded_over_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harvesting, "BATCH_ROWS", 10)
    schema = pa.schema(
        [(name, pa.string()) for name in ("subscriber", "topic", "file")]
        + [("line", pa.int64()), ("reason", pa.string()), ("content", pa.string())]
    )
    sizes = [batch.num_rows for batch in found_batches(iter(PIECES), drawn, schema)]
    assert set(sizes[:-1]) == {10}
    assert sum(sizes) == sum(1 for piece in PIECES for _ in drawn(piece))
