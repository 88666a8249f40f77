"""The large log: which messages are asked for, and a sample from the shipped classes."""

from __future__ import annotations

from pyspark.sql import SparkSession

from linnet.lab.studies.places import folding, line, reassembly, scale
from linnet.lab.studies.places.made import made_log
from linnet.lab.studies.places.parameters import PlacesParameters
from linnet.places.multicast.fragmentation import Flag

SMALL = PlacesParameters(fragments=1000, ids=3, seed=2)


def test_ids_are_spread_and_the_last_is_among_them() -> None:
    assert scale.wanted_ids(SMALL) == [(0, 317), (0, 634), (0, 952)]
    assert scale.sampled_places(SMALL) == [0]
    assert scale.sampled_places(PlacesParameters(fragments=10_000_000)) == [0, 952, 1904]


def test_states_of_a_made_log_are_those_of_the_shipped_classes(spark: SparkSession) -> None:
    log = made_log(spark, SMALL.seed, SMALL.places, SMALL.messages, 1).cache()
    texts = reassembly.first_texts(line.taken(log), int(Flag.STATE))
    intervals = folding.intervals_of(folding.steps_of(reassembly.parsed_of(texts)))
    found = scale.states(intervals, scale.asked(spark, SMALL)).collect()
    expected = scale.sample(log, [0], SMALL)
    assert {(row.place, row.message): row.digest for row in found} == expected
    assert len(set(expected.values())) == 3
    assert all(0 < row.variables <= 28 for row in found)
