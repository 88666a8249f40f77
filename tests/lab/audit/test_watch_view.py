"""What is shown is what a state holds, and small."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from linnet.lab.audit import watch_state as state
from linnet.lab.audit.watch_view import SHOWN, view_of
from linnet.lab.stages import schema_of
from linnet.lab.tables import WATCH_NODES, WATCH_OPEN, WATCH_READERS, WATCH_SUMS, Table


def rows(spark: SparkSession, table: Table, *values: tuple[object, ...]) -> DataFrame:
    return spark.createDataFrame(list(values), schema_of(table))


def test_the_worst_topics_come_first_and_the_rest_is_counted(spark: SparkSession) -> None:
    topics = [bytes([number]) for number in range(SHOWN + 5)]
    sums = [
        *((topic, "published", "", 0, 10) for topic in topics),
        *((topic, "missing", "", 0, number) for number, topic in enumerate(topics)),
        (topics[-1], "delay", "", 7, 3),
        (topics[-1], "delay", "", -1, 1),
        (None, "bad lines", "no JSON", 0, 2),
        (topics[0], "dropped", "quota", 0, 4),
    ]
    known = state.Known(
        open=rows(
            spark,
            WATCH_OPEN,
            (topics[-1], b"d", 5, "published", b"a", 1_000_000, 1),
            (topics[-1], b"d", 5, "delivered", b"b", 1_009_999, 2),
        ),
        sums=rows(spark, WATCH_SUMS, *sums),
        readers=rows(
            spark,
            WATCH_READERS,
            (topics[-1], b"b", 0, 0, True, False),
            (topics[-1], b"c", 0, 9, False, False),
        ),
        nodes=rows(spark, WATCH_NODES, (b"a", 5, 7, True), (b"b", 4, 3, False)),
    )
    view = view_of(known, 99)
    assert (view.watermark_us, view.topic_count, len(view.topics)) == (99, SHOWN + 5, SHOWN)
    first = view.topics[0]
    assert (first.topic, first.published, first.delivered, first.open) == (topics[-1].hex(), 11, 1, 1)
    assert (first.missing, first.readers) == (SHOWN + 4, 1)
    assert (first.p50_ms, first.p99_ms) == (7, None)
    assert view.wrong == {"dropped quota": 4}
    assert (view.bad, view.rows, view.node_count, view.repeated) == (2, 10, 2, 1)
    assert [(node.node, node.is_up) for node in view.nodes] == [("62", False), ("61", True)]
