"""Two ways to the same answers, side by side."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_KEY = ["place", "job", "key"]


def compared(ours: DataFrame, reference: DataFrame) -> DataFrame:
    """Answers and differences of each job: what one does not say counts as well. Grain: (job)."""
    left = ours.withColumnRenamed("answer", "ours")
    right = reference.withColumnRenamed("answer", "theirs")
    both = left.join(right, _KEY, "full")
    differs = ~F.col("ours").eqNullSafe(F.col("theirs"))
    none = F.lit("nothing")
    example = F.concat(
        F.format_string("place %d, %s: ", "place", "key"),
        F.coalesce("ours", none),
        F.lit(", not "),
        F.coalesce("theirs", none),
    )
    return both.groupBy("job").agg(
        F.count(F.lit(1)).alias("answers"),
        F.count_if(differs).alias("differences"),
        F.min(F.when(differs, example)).alias("first"),
    )
