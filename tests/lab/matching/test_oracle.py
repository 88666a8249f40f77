"""Differences between two ways: what is missing, what is too much, what is there twice."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from linnet.content.predicate import read_attributes
from linnet.lab.matching.columns import MATCHES, PAIRS, PREDICATES
from linnet.lab.matching.oracle import differences, oracle_of, pairs_of


def pairs(spark: SparkSession, *rows: tuple[int, int]) -> DataFrame:
    return spark.createDataFrame(rows, PAIRS.columns)


def test_pairs_are_counted_on_both_sides(spark: SparkSession) -> None:
    rows = [(1, 0, [5, 6]), (1, 3, [6])]
    found = pairs_of(spark.createDataFrame(rows, MATCHES.columns))
    predicates = spark.createDataFrame(
        [(5, "stock"), (6, "price[1,9]"), (7, "price[3,9]")], PREDICATES.columns
    )
    oracle = oracle_of(predicates, [(1, read_attributes("price=2/stock"))])
    assert sorted(map(tuple, oracle.collect())) == [(1, 5), (1, 6)]
    assert differences(found, oracle) == 1
    assert differences(pairs(spark, (1, 5), (1, 7)), oracle) == 2
    assert differences(pairs(spark, (1, 6), (1, 5)), oracle) == 0
