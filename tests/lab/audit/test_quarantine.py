"""Bad lines are found with file, line and reason."""

from __future__ import annotations

from pyspark.sql import SparkSession
from tests.lab.audit.homes import BAD, Homes
from tests.lab.audit.tales import Tale

from linnet.lab.audit.quarantine import quarantine_of
from linnet.lab.audit.sources import find_sources


def test_bad_lines_are_named_and_the_torn_one_is_none(spark: SparkSession, homes: Homes, tale: Tale) -> None:
    files = find_sources([homes.folder]).lines
    # Small pieces: the numbers of lines do not depend on how Spark cuts a file.
    before = spark.conf.get("spark.sql.files.maxPartitionBytes") or ""
    spark.conf.set("spark.sql.files.maxPartitionBytes", "2000b")
    try:
        rows = quarantine_of(spark, files).orderBy("line").collect()
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)
    path = homes.folder / homes.names[tale.nodes[0].hex()] / "trace" / "trace.jsonl"
    last = len(path.read_text().splitlines()) - 1
    assert [(row.source, row.file, row.line, row.reason, row.content) for row in rows] == [
        ("trace", str(path.resolve()), 3, "node is no hex", BAD[0]),
        ("trace", str(path.resolve()), last, "no JSON of this schema", BAD[1]),
    ]


def test_where_all_is_well_nothing_is_read_twice(spark: SparkSession, homes: Homes, tale: Tale) -> None:
    others = [file for file in find_sources([homes.folder]).lines if file.node != tale.nodes[0].hex()]
    assert quarantine_of(spark, others).count() == 0
