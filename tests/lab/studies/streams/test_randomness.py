"""How random grown graphs are."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession

from linnet.lab.stages import schema_of
from linnet.lab.studies.streams.graphs import pair_counts
from linnet.lab.studies.streams.randomness import Randomness, read_randomness
from linnet.lab.tables import STREAM_PAIRS


def test_statistics_of_a_small_table() -> None:
    counts = np.array([[0, 4, 2], [4, 0, 0], [2, 0, 0]])
    seen = Randomness(counts, graphs=4, degree=1)
    assert (seen.nodes, seen.expected) == (3, 0.5)
    assert seen.mean == 0.5
    assert seen.deviation == pytest.approx(np.std([1.0, 0.5, 0.0]))
    assert seen.binomial == 0.25
    assert (seen.early, seen.most) == (1.0, 2.0)


def test_grown_graphs_are_close_to_independent_draws() -> None:
    counts = pair_counts(60, 4, list(range(150)))
    seen = Randomness(counts + counts.T, 150, 4)
    assert seen.mean == pytest.approx(4 / 59)
    assert seen.deviation == pytest.approx(seen.binomial, rel=0.1)
    assert 0.6 < seen.early < 1.6


def test_rows_become_a_symmetric_matrix(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(0, 1, 3), (0, 2, 1), (1, 2, 0)], schema_of(STREAM_PAIRS))
    seen = read_randomness(frame, 3, 5, 2)
    assert seen.counts.tolist() == [[0, 3, 1], [3, 0, 0], [1, 0, 0]]
    assert (seen.graphs, seen.degree) == (5, 2)
