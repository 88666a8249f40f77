"""Bins as columns are the bins of numpy."""

from __future__ import annotations

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from linnet.lab.bins import bin_of
from linnet.lab.spark.binning import bin_column


def test_columns_have_the_same_bins(spark: SparkSession) -> None:
    near = [max(-1, (1 << power) + off) for power in range(53) for off in (-1, 0, 1)]
    luck = np.random.Generator(np.random.Philox(3))
    drawn = (2.0 ** luck.uniform(0, 45, 2_000)).astype(np.int64).tolist()
    durations = sorted({-5, -1, 0, 63, 64, 65, *near, *drawn})
    frame = spark.createDataFrame([(each,) for each in durations], "ms bigint")
    found = [
        row.bin for row in frame.select("ms", bin_column(F.col("ms")).alias("bin")).orderBy("ms").collect()
    ]
    assert found == bin_of(np.array(durations, dtype=np.int64)).tolist()
