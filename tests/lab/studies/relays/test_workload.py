"""Chats for the study."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from tests.lab.studies.relays.small_chats import drawn_messages, frame_of

from linnet.lab.stages import Workshop
from linnet.lab.studies.relays.workload import chat_of, phone_traces, pieces, sent
from linnet.lab.tables import SESSIONS


def test_notices_are_not_sent(spark: SparkSession) -> None:
    messages = drawn_messages(1)
    rows = [tuple(row) for row in sent(frame_of(spark, messages)).collect()]
    assert sorted(rows) == sorted(
        (m.chat, m.ts, m.user, m.chars, m.granularity) for m in messages if m.kind != "notice"
    )


def test_only_large_chats_are_cut(spark: SparkSession) -> None:
    messages = drawn_messages(2)
    sizes = {m.chat: sum(1 for other in messages if other.chat == m.chat) for m in messages}
    rows = pieces(sent(frame_of(spark, [m._replace(kind="text") for m in messages])), large=20).collect()
    found: dict[str, dict[int, int]] = {}
    for row in rows:
        found.setdefault(row.chat, {}).setdefault(row.piece, 0)
        found[row.chat][row.piece] += 1
    assert found == {
        chat: dict.fromkeys(range(1, 6), size) if size >= 20 else {0: size} for chat, size in sizes.items()
    }
    assert max(sizes.values()) >= 20 > min(sizes.values())


def test_a_chat_is_made_of_its_rows_in_any_order() -> None:
    table = pa.table(
        {
            "ts": [90, 70, 80],
            "user": ["b", "a", "b"],
            "chars": pa.array([3, 1, 2], pa.int32()),
            "granularity": ["min"] * 3,
        }
    )
    chat, seconds = chat_of(table)
    assert (chat.ts.tolist(), chat.chars.tolist(), chat.members, seconds) == (
        [0, 10, 20],
        [1, 2, 3],
        2,
        False,
    )
    assert chat.user[1] == chat.user[2] != chat.user[0]


def test_traces_of_phones_are_in_the_order_of_their_names(spark: SparkSession, tmp_path: Path) -> None:
    rows = [("b", 5, 9, 100), ("a", 50, 60, 90), ("b", 1, 2, 100), ("a", 10, 20, 90)]
    made = Workshop(spark, tmp_path).stage(
        "sessions", SESSIONS, lambda: spark.createDataFrame(rows, SESSIONS.columns)
    )
    traces = [(trace.start.tolist(), trace.end.tolist(), trace.length) for trace in phone_traces(made)]
    assert traces == [([10, 50], [20, 60], 90), ([1, 5], [2, 9], 100)]
