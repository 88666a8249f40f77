"""Calls by every prefix: sums are right at every level."""

from __future__ import annotations

from collections import Counter

from pyspark.sql import SparkSession
from tests.lab.studies.places.conftest import Looked

from linnet.lab.studies.places.methods import rolled_up, slices
from linnet.places.channel import packet


def test_prefixes_are_the_slices_of_the_shipped_function(spark: SparkSession) -> None:
    names = ["_message_public_shout", "_message", "plain", "a_", "__a", "_", "_a__b"]
    rows = spark.createDataFrame([(name,) for name in names], "method STRING").select(
        "method", slices("method")
    )
    for row in rows.collect():
        assert sorted(row[1]) == sorted(packet.slices(row.method))


def test_every_level_is_the_sum_of_what_it_covers(looked: Looked) -> None:
    rows = looked.parsed.where("method IS NOT NULL").select("place", "method").collect()
    called = Counter(
        (row.place, prefix) for row in rows for prefix in dict.fromkeys(packet.slices(row.method))
    )
    found = {(row.place, row.prefix): row.messages for row in rolled_up(looked.parsed).collect()}
    assert found == called
