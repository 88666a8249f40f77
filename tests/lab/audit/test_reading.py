"""Lines of nodes and tables of simulations give the same rows; what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import Row as SparkRow
from pyspark.sql import SparkSession
from tests.lab.audit.homes import Homes
from tests.lab.audit.tales import Tale, us

from linnet.core.ids import PeerId
from linnet.lab.audit.reading import microseconds, parsed, trace_rows
from linnet.lab.audit.sources import find_sources
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Kind, Record, Row


def as_row(row: SparkRow) -> Row:
    return Row._make(bytes(value) if isinstance(value, bytearray) else value for value in row)


def test_lines_and_tables_are_one_trace(
    spark: SparkSession, homes: Homes, tale: Tale, tmp_path: Path
) -> None:
    found = trace_rows(spark, find_sources([homes.folder])).collect()
    assert sorted(map(as_row, found), key=repr) == sorted(tale.rows, key=repr)
    columns = ColumnTrace()
    for number in range(3):
        columns.write(PeerId(b"n" * 32), Record(Kind.SENT, seq=number), 1_700_000_000 + number / 7)
    columns.write_parquet(tmp_path / "run.parquet")
    both = trace_rows(spark, find_sources([homes.folder, tmp_path / "run.parquet"]))
    assert both.count() == len(tale.rows) + 3
    rows = both.where("kind = 'sent'").select("seq", microseconds(both.time).alias("us")).collect()
    assert sorted((row.seq, row.us) for row in rows) == [(row.seq, us(row)) for row in columns.rows()]


GOOD = '"time":1.5,"node":"6e","counter":0,"kind":"sent","events":1'


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{" + GOOD + "}", None),
        ("{" + GOOD + ',"later":1}', None),
        ('{"linnet_trace":1,"level":"full","columns":[]}', None),
        ('{"linnet_trace":2,"level":"full","columns":[]}', "a header of a newer Linnet"),
        ('{"linnet_trace":', "a header that is no JSON"),
        ("", "no JSON of this schema"),
        ("{" + GOOD, "no JSON of this schema"),
        ("[1]", "no JSON of this schema"),
        ("{" + GOOD.replace("1.5", '"noon"') + "}", "no JSON of this schema"),
        ("{" + GOOD.replace('"counter":0,', "") + "}", "no counter"),
        ("{" + GOOD.replace("sent", "sung") + "}", "a kind that is not known"),
        ("{" + GOOD.replace('"counter":0', '"counter":-1') + "}", "a negative number"),
        ("{" + GOOD.replace("6e", "6") + "}", "node is no hex"),
        ("{" + GOOD + ',"topic":"XY"}', "topic is no hex"),
    ],
)
def test_what_is_wrong_with_a_line_is_named(spark: SparkSession, line: str, reason: str | None) -> None:
    (row,) = parsed(spark.createDataFrame([(line,)], "line string")).select("reason").collect()
    assert row.reason == reason
