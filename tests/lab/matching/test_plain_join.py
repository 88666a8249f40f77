"""The plain join, beside what predicates themselves say."""

from __future__ import annotations

from pyspark.sql import SparkSession

from linnet.content.predicate import read_attributes, read_predicate
from linnet.lab.matching.plain_join import part_of, plain_pairs, written_of

ASKED = (
    "stock",
    "price[10,20]",
    "price(10,20)/stock",
    "price(,10]",
    'symbol="AA"*',
    'symbol="AAPL"/stock',
    "at{36.9,-9.6,42.2,-6.1}",
    "day[2026-11-01,2026-12-01)",
    "price",
)
SAID = (
    "stock",
    "price=10/stock",
    "price=20",
    'price=12/stock/symbol="AAPL"',
    'symbol="AB"',
    "at={38.7,-9.1}/stock",
    "at={36.9,-9.7}",
    "day=2026-11-01",
    "day=2026-12-01",
    "price",
)


def test_pairs_are_those_that_predicates_accept(spark: SparkSession) -> None:
    asked = spark.createDataFrame(list(enumerate(ASKED)), "subscription BIGINT, predicate STRING")
    said = spark.createDataFrame(list(enumerate(SAID)), "event BIGINT, attributes STRING")
    found = plain_pairs(written_of(said), written_of(asked)).collect()
    expected = [
        (event, subscription)
        for event, text in enumerate(SAID)
        for subscription, predicate in enumerate(ASKED)
        if read_predicate(predicate).covers(read_attributes(text))
    ]
    assert sorted((row.event, row.subscription) for row in found) == expected
    assert len(expected) > len(SAID)


def test_a_condition_as_columns() -> None:
    [(name, words)] = read_predicate('symbol="AA"*').conditions
    assert part_of(name, words) == {"name": "symbol", "kind": "Words", "text": "AA", "high_open": True}
