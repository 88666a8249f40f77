"""The protocol engine against the definitions, on random chats; and as a transform of Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from linnet.lab.relays.chat_arrays import ChatArrays, ChatIndex, chat_arrays, index_chat
from linnet.lab.relays.margins import chat_margins, longest_pause
from linnet.lab.relays.presence import Presence, periods_around
from linnet.lab.relays.protocol import protocol_runs, relays_for, run_protocol
from linnet.lab.relays.receptions import Reception, relayed_receptions, synchronised_receptions
from linnet.lab.stages import schema_of
from linnet.lab.tables import PROTOCOL_RUNS, WINDOWS

SOAK = bool(os.environ.get("LINNET_SOAK"))
CHATS = 200 if SOAK else 40


def random_chat(seed: int) -> ChatArrays:
    """2 to 6 members and 10 to 40 messages, some at the same moment, in bursts and after long breaks."""
    luck = Random(seed)
    members, time = luck.randint(2, 6), 0
    times, users = [], []
    for number in range(luck.randint(10, 40)):
        time += 0 if luck.random() < 0.1 else int(10 ** luck.uniform(0, 5.5))
        times.append(time)
        users.append(number if number < members else luck.randrange(members))
    return chat_arrays(times, users, [5] * len(times))


@pytest.mark.parametrize("seed", range(CHATS))
def test_random_chats_arrive_as_the_definitions_say(seed: int) -> None:
    chat = random_chat(seed)
    index, margins = index_chat(chat), chat_margins(longest_pause(chat))
    for margin in margins if SOAK else margins[seed % 5 :][:1]:
        presence = periods_around(index, margin)
        relayed = run_protocol(chat, presence, 1 + seed % 2, seed)
        assert relayed.receptions == relayed_receptions(chat, presence)
        alone = run_protocol(chat, presence, 0, seed)
        told = synchronised_receptions(chat, presence)
        assert alone.receptions == sorted((*told.direct, *told.backfilled))
        assert (relayed.held, alone.held) == (0, 0)


def test_people_who_are_there_at_any_time(at_any_time: Iterator[tuple[ChatIndex, Presence]]) -> None:
    for number, (index, presence) in enumerate(islice(at_any_time, CHATS // 4)):
        chat = index.chat
        relayed = run_protocol(chat, presence, 1 + number % 2)
        assert relayed.receptions == relayed_receptions(chat, presence)
        told = synchronised_receptions(chat, presence)
        assert run_protocol(chat, presence, 0).receptions == sorted((*told.direct, *told.backfilled))


def test_relays_of_a_room() -> None:
    assert [relays_for(members) for members in (2, 9, 10, 30)] == [1, 1, 2, 2]


def window(chat: str, mode: str, **changes: list[int]) -> dict[str, Any]:
    """Member 0 speaks at 10 ms and 500 ms, member 1 at 300 ms; nobody is there together with the other."""
    row: dict[str, Any] = {
        "chat": chat,
        "margin": 1,
        "mode": mode,
        "margin_ms": 5,
        "stratum": "dyads",
        "members": 2,
        "relays": 1 if mode == "relays" else 0,
        "ts": [10, 300, 500],
        "user": [0, 1, 0],
        "chars": [3, 0, 7],
        "member": [0, 0, 1],
        "start_ms": [5, 495, 295],
        "end_ms": [15, 505, 305],
    }
    return row | changes


def test_each_window_is_run(spark: SparkSession) -> None:
    rows = [window("b", "relays"), window("a", "p2p"), window("a", "relays")]
    windows = spark.createDataFrame(rows, schema_of(WINDOWS))
    runs = protocol_runs(windows, tasks=2)
    assert runs.schema.fieldNames() == schema_of(PROTOCOL_RUNS).fieldNames()
    found = {(row["chat"], row["mode"]): row for row in runs.collect()}
    assert sorted(found) == [("a", "p2p"), ("a", "relays"), ("b", "relays")]
    for (_, mode), row in found.items():
        received = list(map(Reception, row["event"], row["receiver"], row["received_ms"]))
        relayed = [Reception(0, 1, 295), Reception(1, 0, 495)]
        assert received == (relayed if mode == "relays" else [])
        assert (row["held"], row["instants"]) == (0, 9)


def test_a_window_that_cannot_be_run_is_named(spark: SparkSession) -> None:
    windows = spark.createDataFrame([window("odd", "p2p", end_ms=[10, 505, 305])], schema_of(WINDOWS))
    with pytest.raises(PythonException, match=r"chat odd, margin 1, p2p: .*member 0 speaks at 10 ms"):
        protocol_runs(windows, tasks=1).collect()
