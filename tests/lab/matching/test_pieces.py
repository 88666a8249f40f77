"""One piece after the other: predicates, then the events that go by. The whole job: test_job.py."""

from __future__ import annotations

from pyspark.sql import SparkSession

from linnet.content.predicate import read_attributes, read_predicate
from linnet.lab.matching.columns import EVENTS, PREDICATES
from linnet.lab.matching.homes import Rarity, make_plan
from linnet.lab.matching.oracle import pairs_of
from linnet.lab.matching.pieces import Piece, homes_of, matches_of, placed_of, routed_of, settlements_of


def test_events_are_asked_of_their_own_piece_alone() -> None:
    piece = Piece()
    first = [
        (0, 0, 7, "stock"),
        (0, 0, 3, "price[1,5]"),
        (0, 1, 100, "price=2/stock"),
        (0, 1, 101, "price=9"),
    ]
    assert list(piece.pass_by(first)) == [(100, 0, [3, 7])]
    later = [(0, 1, 102, "stock"), (2, 0, 8, "stock"), (2, 1, 102, "stock"), (3, 1, 102, "stock")]
    assert list(piece.pass_by(later)) == [(102, 0, [7]), (102, 2, [8])]


def test_what_reaches_over_cuts_is_found_in_each_of_its_pieces(spark: SparkSession) -> None:
    asked = [f"price[{low},{low + 15}]" for low in range(60)]
    said = [f"price={value}" for value in range(0, 80, 3)]
    predicates = spark.createDataFrame(list(enumerate(asked)), PREDICATES.columns)
    events = spark.createDataFrame(list(enumerate(said)), EVENTS.columns)
    homes = homes_of(predicates, Rarity([read_attributes(text) for text in said]))
    plan = make_plan(settlements_of(homes), capacity=10)
    placed = placed_of(homes, plan)
    assert placed.count() > 2 * len(asked)
    found = pairs_of(matches_of(placed, routed_of(events, plan), 2)).collect()
    assert sorted((row.event, row.subscription) for row in found) == [
        (event, subscription)
        for event, text in enumerate(said)
        for subscription, predicate in enumerate(asked)
        if read_predicate(predicate).covers(read_attributes(text))
    ]
