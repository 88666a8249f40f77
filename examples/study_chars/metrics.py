"""The measurement: lengths pooled over all chats."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def pooled(lengths: DataFrame) -> dict[int, int]:
    """Sum the counts by bin over all chats. A few hundred bins fit into the driver."""
    sums = lengths.groupBy("bin").agg(F.sum("count").alias("count"))
    return {row["bin"]: row["count"] for row in sums.orderBy("bin").collect()}
