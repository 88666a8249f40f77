"""Lines that could not be used: where each stands, and why."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from linnet.lab.audit.reading import parsed, text_lines
from linnet.lab.audit.sources import LineFile
from linnet.lab.stages import schema_of
from linnet.lab.tables import QUARANTINE

SOURCE = "trace"
_SHOWN = 200


def quarantine_of(spark: SparkSession, files: Sequence[LineFile]) -> DataFrame:
    """Every line that is neither a row nor a header, with file, line and reason.

    Lines are numbered only in files that hold a bad one: that takes a sort, and most hold none.
    """
    found = parsed(text_lines(spark, files)).where(F.col("reason").isNotNull()).select("file").distinct()
    bad = {row.file for row in found.collect()}
    chosen = [file for file in files if str(file.path.resolve()) in bad]
    if not chosen:
        return spark.createDataFrame([], schema_of(QUARANTINE))
    in_order = Window.partitionBy("file").orderBy("block", "place")
    lines = text_lines(spark, chosen).withColumn("number", F.row_number().over(in_order).cast("bigint"))
    return (
        parsed(lines)
        .where(F.col("reason").isNotNull())
        .select(
            F.lit(SOURCE).alias("source"),
            "file",
            F.col("number").alias("line"),
            "reason",
            F.substring("line", 1, _SHOWN).alias("content"),
        )
    )
