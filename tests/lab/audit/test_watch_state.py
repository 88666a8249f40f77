"""What a watch adds up from batches, against loops over the rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.lab.audit.tales import Oracle, Tale, frame_of, us

from linnet.lab.audit import watch_state as state
from linnet.lab.bins import bin_of
from linnet.lab.stages import schema_of
from linnet.lab.tables import WATCH_NODES, WATCH_OPEN, WATCH_READERS


def empty(spark: SparkSession) -> dict[str, DataFrame]:
    tables = {"open": WATCH_OPEN, "readers": WATCH_READERS, "nodes": WATCH_NODES}
    return {name: spark.createDataFrame([], schema_of(table)) for name, table in tables.items()}


def test_two_batches_come_to_the_same_as_one(spark: SparkSession, tale: Tale) -> None:
    half = len(tale.rows) // 2
    before = empty(spark)
    found: dict[str, list[list[object]]] = {name: [] for name in before}
    for batches in ([tale.rows], [tale.rows[:half], tale.rows[half:]]):
        known = dict(before)
        for rows in batches:
            marked = state.marked(frame_of(spark, rows), 0)
            known = {
                "open": state.open_after(known["open"], marked),
                "readers": state.readers_after(known["readers"], marked),
                "nodes": state.nodes_after(known["nodes"], marked),
            }
        for name, frame in known.items():
            found[name].append(sorted(map(tuple, frame.collect()), key=repr))
    for name, (one, two) in found.items():
        assert one == two, name
        assert one, name


def test_nodes_are_seen_last_when_they_wrote_last(spark: SparkSession, tale: Tale) -> None:
    marked = state.marked(frame_of(spark, tale.rows), 0)
    for row in state.nodes_after(empty(spark)["nodes"], marked).collect():
        mine = [each for each in tale.rows if each.node == bytes(row.node)]
        assert (row.last_us, row.rows) == (max(map(us, mine)), len(mine))


def test_events_amount_to_what_was_published_and_delivered(
    spark: SparkSession, tale: Tale, oracle: Oracle
) -> None:
    marked = state.marked(frame_of(spark, tale.rows), 0)
    before = empty(spark)
    events = state.events_of(state.open_after(before["open"], marked))
    readers = state.readers_after(before["readers"], marked)
    sums = {
        (bytes(row.topic), row.name, row.bin): row.value
        for row in state.sums_of_events(events, readers, final=False).collect()
    }
    wanted: Counter[tuple[bytes, str, int]] = Counter()
    for event in oracle.published:
        wanted[event[0], "published", 0] += 1
    for (event, _), came in oracle.arrivals.items():
        if event not in oracle.published:
            wanted[event[0], "unpublished", 0] += 1
            continue
        delay = min(time for time, _ in came) - oracle.published[event][1]
        wanted[event[0], "delivered", 0] += 1
        wanted[event[0], "delay", int(bin_of(np.array([-(-max(0, delay) // 1000)]))[0])] += 1
        if len(came) > 1:
            wanted[event[0], "repeated", 0] += len(came) - 1
    assert sums == wanted


def test_missing_is_who_took_part_and_has_it_not(spark: SparkSession, tale: Tale, oracle: Oracle) -> None:
    marked = state.marked(frame_of(spark, tale.rows), 0)
    before = empty(spark)
    events = state.events_of(state.open_after(before["open"], marked))
    readers = state.readers_after(before["readers"], marked)
    sums = state.sums_of_events(events, readers, final=True).where("name = 'missing'").collect()
    wanted: Counter[bytes] = Counter()
    for reader in readers.collect():
        topic, node = bytes(reader.topic), bytes(reader.node)
        for event, (author, published, _) in oracle.published.items():
            there = reader.begin_us <= published and (reader.is_on or reader.switched_us > published)
            if event[0] == topic and there and (node != author or reader.own):
                wanted[topic] += (event, node) not in oracle.arrivals
    assert {bytes(row.topic): row.value for row in sums} == +wanted


def test_late_rows_are_counted_and_open_nothing(spark: SparkSession, tale: Tale) -> None:
    newest = max(map(us, tale.rows)) + 1
    marked = state.marked(frame_of(spark, tale.rows), newest)
    assert state.open_after(empty(spark)["open"], marked).isEmpty()
    late = state.sums_of_rows(marked).where("name = 'late'").agg(F.sum("value")).first()
    assert late is not None
    assert late[0] == len(tale.rows)
