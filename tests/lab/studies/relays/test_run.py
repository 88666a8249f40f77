"""The model through Spark is the model."""

from __future__ import annotations

import random

import numpy as np
import pytest
from pyspark.sql import SparkSession
from tests.lab.studies.relays.small_chats import Message, drawn_messages, frame_of

from linnet.lab.relays.chat_arrays import chat_arrays, index_chat
from linnet.lab.relays.outcomes import MODES
from linnet.lab.relays.phones import PhoneTrace
from linnet.lab.studies.relays.run import Attending, Work, chat_luck, outcome_rows, outcomes_of
from linnet.lab.studies.relays.workload import LARGE, sent

PHONES = Attending(
    phones=[PhoneTrace(np.array([0, 50_000_000]), np.array([9_000_000, 60_000_000]), 604_800_000)], seed=3
)

Told = dict[tuple[str, int, str, str], dict[int, int]]


def plainly(messages: list[Message], attending: Attending) -> Told:
    """Chat after chat, without Spark."""
    told: Told = {}
    for chat in {message.chat for message in messages}:
        rows = [message for message in messages if message.chat == chat and message.kind != "notice"]
        if not rows:
            continue
        index = index_chat(chat_arrays([m.ts for m in rows], [m.user for m in rows], [m.chars for m in rows]))
        began = min(m.ts for m in rows)
        work = Work(chat, index, rows[0].granularity == "s", began=began)
        for row in outcome_rows(work, attending):
            told[chat, row.margin, row.mode, row.measure] = dict(row.counts)
    return told


def through_spark(
    spark: SparkSession, messages: list[Message], attending: Attending, large: int = LARGE
) -> Told:
    found = outcomes_of(sent(frame_of(spark, messages)), attending, large).collect()
    told = {
        (row.chat, row.margin, row.mode, row.measure): dict(zip(row.bins, row.counts, strict=True))
        for row in found
    }
    assert len(told) == len(found)
    return told


@pytest.mark.parametrize("attending", [Attending(), PHONES], ids=["margins", "phones"])
def test_every_chat_gives_what_it_gives_alone(spark: SparkSession, attending: Attending) -> None:
    messages = drawn_messages(11)
    told = through_spark(spark, messages, attending)
    assert told == plainly(messages, attending)
    assert {mode for _, _, mode, _ in told} >= {*MODES, "profile"}


def test_a_chat_in_pieces_gives_the_same(spark: SparkSession) -> None:
    messages = drawn_messages(12, chats=3)
    whole = through_spark(spark, messages, Attending())
    assert through_spark(spark, messages, Attending(), large=1) == whole
    assert through_spark(spark, messages, PHONES, large=1) == plainly(messages, PHONES)


def test_the_order_of_messages_at_one_time_does_not_matter() -> None:
    """Rows of a shuffle come in any order."""
    luck = random.Random(5)
    for seed in range(20):
        messages = [m._replace(ts=m.ts - m.ts % 3_600_000) for m in drawn_messages(seed, chats=3, most=25)]
        told = plainly(messages, Attending())
        luck.shuffle(messages)
        assert plainly(messages, Attending()) == told


def test_each_chat_has_a_luck_of_its_own() -> None:
    assert len({chat_luck(seed, chat) for seed in (1, 2) for chat in ("a", "b")}) == 4
    assert chat_luck(1, "a") == chat_luck(1, "a") == 13_771_330_872_463_629_691
