"""Every table can be read by Spark, names its rows by columns that it has, and is named once."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from linnet.lab import tables
from linnet.lab.stages import schema_of
from linnet.lab.tables import Table

ALL = [value for value in vars(tables).values() if isinstance(value, Table)]


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.name)
def test_columns_are_ddl_and_hold_the_grain(spark: SparkSession, table: Table) -> None:
    names = schema_of(table).fieldNames()
    assert set(table.grain) <= set(names)
    assert len(set(names)) == len(names)


def test_names_are_told_apart() -> None:
    assert len({table.name for table in ALL}) == len(ALL)
