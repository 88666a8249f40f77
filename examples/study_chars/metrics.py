"""What is measured."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def pooled(lengths: DataFrame) -> dict[int, int]:
    """Counts by bin over all chats; there are a few hundred bins, so they can be brought here."""
    sums = lengths.groupBy("bin").agg(F.sum("count").alias("count"))
    return {row["bin"]: row["count"] for row in sums.orderBy("bin").collect()}
