"""Every table can be read by Spark and names its rows by columns that it has; tasks give just these."""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql import SparkSession

from linnet.lab.matching import columns
from linnet.lab.matching.columns import batch_of
from linnet.lab.stages import schema_of
from linnet.lab.tables import Table

ALL = [value for value in vars(columns).values() if isinstance(value, Table)]
GIVEN = {
    columns.PREDICATES: columns.PREDICATES_ARROW,
    columns.HOMES: columns.HOMES_ARROW,
    columns.PLACED: columns.PLACED_ARROW,
    columns.MATCHES: columns.MATCHES_ARROW,
    columns.PAIRS: columns.PAIRS_ARROW,
    columns.WRITTEN: columns.WRITTEN_ARROW,
}


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.name)
def test_columns_are_ddl_and_hold_the_grain(spark: SparkSession, table: Table) -> None:
    names = schema_of(table).fieldNames()
    assert set(table.grain) <= set(names)
    if table in GIVEN:
        assert GIVEN[table].names == names


def test_a_batch_without_rows_has_its_columns() -> None:
    assert batch_of([], columns.PAIRS_ARROW).num_rows == 0
    assert batch_of([(1, 2)], columns.PAIRS_ARROW).to_pylist() == [{"event": 1, "subscription": 2}]
    assert isinstance(batch_of([], columns.WRITTEN_ARROW).schema, pa.Schema)
