"""Samples and windows against plain Python: who is drawn, what is cut, who is online in it."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from linnet.lab.relays.chat_arrays import ChatIndex
from linnet.lab.relays.presence import Presence, merge_periods
from linnet.lab.relays.windows import FEWEST, cut, cut_windows, sample, window_rows
from linnet.lab.stages import schema_of
from linnet.lab.tables import MESSAGES, PROFILES, WINDOWS


def profiles(spark: SparkSession, rows: list[tuple[str, int, int, int]]) -> DataFrame:
    """Chats by name, members, messages and longest pause."""
    columns = {field.name: field for field in schema_of(PROFILES)}
    schema = StructType([columns[name] for name in ("chat", "members", "messages", "max_iat_ms")])
    return spark.createDataFrame(rows, schema)


def drawn(frame: DataFrame, seed: int, chats: int) -> list[tuple[str, str]]:
    return sorted((row["chat"], row["stratum"]) for row in sample(frame, seed, chats).collect())


def test_strata_take_turns_until_there_are_enough(spark: SparkSession) -> None:
    rows = [(f"dyad{n:02}", 2, 50, 5000) for n in range(20)]
    rows += [(f"team{n:02}", 9, 1000, 5000) for n in range(20)]
    rows += [("crowd0", 30, 1001, 5000), ("crowd1", 10, 5000, 5000)]
    frame = profiles(spark, rows)
    first = drawn(frame, 1, 12)
    assert Counter(stratum for _, stratum in first) == {
        "dyads, up to 100 messages": 5,
        "3-9, 101-1000 messages": 5,
        "10-30, over 1000 messages": 2,
    }
    assert first == drawn(frame.repartition(7), 1, 12)
    assert first != drawn(frame, 2, 12)
    assert len(drawn(frame, 1, 200)) == 42


def test_chats_of_no_use_are_not_drawn(spark: SparkSession) -> None:
    rows = [("alone", 1, 50, 5000), ("many", 31, 50, 5000), ("hasty", 2, 50, 1000), ("good", 2, 2, 1001)]
    assert drawn(profiles(spark, rows), 1, 9) == [("good", "dyads, up to 100 messages")]


def chats(sizes: dict[str, int]) -> dict[str, list[tuple[int, str, int]]]:
    """Messages of each chat in order: time, user, characters, with several at one time."""
    luck = Random(3)
    made: dict[str, list[tuple[int, str, int]]] = {}
    for chat, size in sizes.items():
        rows = [(1_600_000_000_000 + luck.randrange(size) * 1000, luck.choice("abc"), n) for n in range(size)]
        made[chat] = sorted(rows)
    return made


def messages(spark: SparkSession, made: dict[str, list[tuple[int, str, int]]]) -> DataFrame:
    rows = [(chat, *row, "text", "s") for chat, said in made.items() for row in said]
    Random(5).shuffle(rows)
    return spark.createDataFrame(rows, schema_of(MESSAGES))


def test_windows_are_consecutive_messages_and_bounded(spark: SparkSession) -> None:
    made = chats({"long": 400, "short": 30, "broad": 150, "wide": 150, "unsampled": 20})
    rows = [("long", 3, 400, 5000), ("short", 3, 30, 5000), ("broad", 5, 150, 5000), ("wide", 30, 150, 5000)]
    sampled = sample(profiles(spark, rows), 1, 9)
    found = {
        row["chat"]: row for row in cut(messages(spark, made), sampled, 1, longest=35, work=120).collect()
    }
    assert {chat: len(row["said"]) for chat, row in found.items()} == {
        "long": 35,
        "short": 30,
        "broad": 24,
        "wide": FEWEST,
    }
    for chat, row in found.items():
        numbers = [each["number"] for each in row["said"]]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert [(each["ts"], each["user"], each["chars"]) for each in row["said"]] == made[chat][
            numbers[0] : numbers[-1] + 1
        ]


def cut_row(**changes: int) -> dict[str, Any]:
    said = [
        {"number": 7, "ts": 50_000, "user": "z", "chars": 4},
        {"number": 8, "ts": 51_500, "user": "a", "chars": 0},
        {"number": 9, "ts": 90_000, "user": "z", "chars": 9},
    ]
    return {"chat": "club", "members": 12, "max_iat_ms": 16_000, "stratum": "10-30", "said": said} | changes


def test_a_window_has_the_margins_of_its_chat_in_both_modes() -> None:
    rows = list(window_rows(cut_row()))
    assert [(row["margin"], row["margin_ms"], row["mode"], row["relays"]) for row in rows] == [
        (number, margin, mode, relays)
        for number, margin in enumerate((1000, 2000, 4000, 8000, 16_000), 1)
        for mode, relays in (("p2p", 0), ("relays", 2))
    ]
    first = rows[0]
    assert (first["ts"], first["user"], first["chars"]) == ([0, 1500, 40_000], [1, 0, 1], [4, 0, 9])
    assert first["members"] == 2
    assert list(zip(first["member"], first["start_ms"], first["end_ms"], strict=True)) == [
        (0, 500, 2500),
        (1, 0, 1000),
        (1, 39_000, 41_000),
    ]


def test_a_chat_without_margins_gives_no_windows() -> None:
    assert list(window_rows(cut_row(max_iat_ms=1000))) == []


def always(chat: str, index: ChatIndex, margin: int) -> Presence:
    """Everybody, from the first message to a margin after the last."""
    members = np.arange(index.chat.members, dtype=np.int32)
    end = np.full(len(members), index.chat.ts[-1] + margin)
    return merge_periods(members, np.zeros(len(members), dtype=np.int64), end)


@pytest.mark.parametrize("presence", ["margins", "always"])
def test_windows_are_a_table(spark: SparkSession, presence: str) -> None:
    made = chats({"one": 40, "two": 25})
    sampled = sample(profiles(spark, [("one", 3, 40, 5000), ("two", 3, 25, 9000)]), 1, 9)
    said = messages(spark, made)
    table = cut_windows(said, sampled, 1, presence_of=always) if presence == "always" else None
    table = cut_windows(said, sampled, 1) if table is None else table
    assert table.schema.fieldNames() == schema_of(WINDOWS).fieldNames()
    rows = table.collect()
    assert len({(row["chat"], row["margin"], row["mode"]) for row in rows}) == len(rows) == 20
    for row in rows:
        expected = [time - made[row["chat"]][0][0] for time, _, _ in made[row["chat"]]]
        assert row["ts"] == expected
        if presence == "always":
            assert row["end_ms"] == [expected[-1] + row["margin_ms"]] * row["members"]
