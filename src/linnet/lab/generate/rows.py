"""Chats as rows of the table of messages, drawn by the tasks of Spark.

A task draws whole chats, one after the other, as arrays of numbers; strings come into being only in
batches of bounded size. A chat of a million messages takes about 40 MB while it is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from linnet.lab.generate.conversation import converse
from linnet.lab.generate.facts import KINDS, LARGEST
from linnet.lab.generate.plan import ChatPlan, split_tasks
from linnet.lab.tables import MESSAGES

BATCH = 1 << 16
"""Rows of a batch at most."""

Batches: TypeAlias = Iterable[pa.RecordBatch]

_NAMES = ["chat", "ts", "user", "chars", "kind", "granularity"]


def messages_of(
    spark: SparkSession, plans: Sequence[ChatPlan], seed: int, task_messages: int | None = None
) -> DataFrame:
    """The table of messages: a chat lies in one partition, in order of time; grain: a message."""
    tasks = split_tasks(plans) if task_messages is None else split_tasks(plans, task_messages)
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    return numbers.mapInArrow(_drawing(tasks, seed), MESSAGES.columns)


def _drawing(tasks: Sequence[Sequence[ChatPlan]], seed: int) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    def draw(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for plan in tasks[number]:
                    yield from chat_rows(plan, seed)

    return draw


def chat_rows(plan: ChatPlan, seed: int) -> Iterator[pa.RecordBatch]:
    """The messages of one chat; its members are ``u1``, who writes most often, ``u2`` and so on."""
    said = converse(plan, seed)
    users = pa.array([f"u{rank + 1}" for rank in range(LARGEST)])
    kinds = pa.array(KINDS)
    longest = min(BATCH, plan.messages)
    chat = pa.repeat(plan.name, longest)
    granularity = pa.repeat(plan.granularity, longest)
    for start in range(0, plan.messages, BATCH):
        part = slice(start, start + BATCH)
        ts = pa.array(said.ts[part])
        columns = [
            chat[: len(ts)],
            ts,
            users.take(pa.array(said.author[part])),
            pa.array(said.chars[part]),
            kinds.take(pa.array(said.kind[part])),
            granularity[: len(ts)],
        ]
        yield pa.RecordBatch.from_arrays(columns, names=_NAMES)
