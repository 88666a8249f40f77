"""Chats as rows: batches are bounded, and how they are spread changes nothing."""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as sf

from linnet.lab.generate.conversation import converse
from linnet.lab.generate.facts import KINDS
from linnet.lab.generate.plan import START_MS, ChatPlan, Granularity, plan_chats
from linnet.lab.generate.rows import BATCH, chat_rows, messages_of
from linnet.lab.stages import schema_of
from linnet.lab.tables import MESSAGES


def plain_rows(plan: ChatPlan, seed: int) -> list[tuple[object, ...]]:
    said = converse(plan, seed)
    return [
        (plan.name, ts, f"u{author + 1}", chars, KINDS[kind], plan.granularity)
        for ts, author, kind, chars in zip(*(column.tolist() for column in said), strict=True)
    ]


def test_a_chat_is_cut_into_batches() -> None:
    plan = ChatPlan(7, 3, 2 * BATCH + 5, "min", START_MS)
    batches = list(chat_rows(plan, 1))
    assert [len(batch) for batch in batches] == [BATCH, BATCH, 5]
    rows = pa.Table.from_batches(batches).to_pylist()
    assert [tuple(row.values()) for row in rows] == plain_rows(plan, 1)


def test_the_table_has_every_chat_in_one_partition_in_order(spark: SparkSession) -> None:
    plans = plan_chats(12, 3_000, Granularity.PUBLISHED, 5)
    frame = messages_of(spark, plans, 5, task_messages=700)
    assert frame.schema == schema_of(MESSAGES)
    found = frame.withColumn("place", sf.spark_partition_id()).collect()
    places = {(row.chat, row.place) for row in found}
    assert len(places) == 12
    assert len({place for _, place in places}) == 5
    for plan in plans:
        assert [tuple(row)[:6] for row in found if row.chat == plan.name] == plain_rows(plan, 5)


def test_any_number_of_tasks_gives_the_same_rows(spark: SparkSession) -> None:
    plans = plan_chats(8, 2_000, Granularity.PUBLISHED, 2)

    def rows(task_messages: int) -> list[Row]:
        return (
            messages_of(spark, plans, 2, task_messages)
            .orderBy("chat", "ts", "user", "chars", "kind")
            .collect()
        )

    assert rows(300) == rows(10_000)
