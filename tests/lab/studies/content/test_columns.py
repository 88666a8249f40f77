"""Every table can be read by Spark and names its rows by columns that it has; tasks give just these."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from linnet.lab.stages import schema_of
from linnet.lab.studies.content import columns
from linnet.lab.studies.content.columns import ARROW, POINTS
from linnet.lab.tables import Table

ALL = [value for value in vars(columns).values() if isinstance(value, Table)]


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.name)
def test_columns_are_ddl_and_hold_the_grain(spark: SparkSession, table: Table) -> None:
    names = schema_of(table).fieldNames()
    assert set(table.grain) <= set(names)
    assert len(set(names)) == len(names)


def test_tasks_give_the_columns_of_points(spark: SparkSession) -> None:
    assert [field.name for field in ARROW] == schema_of(POINTS).fieldNames()
