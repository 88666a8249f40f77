"""Small chats, drawn by seed."""

from __future__ import annotations

import random
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from linnet.lab.tables import MESSAGES


class Message(NamedTuple):
    chat: str
    ts: int
    user: str
    chars: int
    kind: str
    granularity: str


def drawn_messages(seed: int, chats: int = 6, most: int = 40) -> list[Message]:
    """Some chats of one to five people, with ties and pauses from none to days; one has a single message."""
    luck = random.Random(seed)
    found = []
    for number in range(chats):
        members, time = luck.randint(1, 5), 1_600_000_000_000
        granularity = luck.choice(["s", "s", "min"])
        for _ in range(1 if number == 0 else luck.randint(2, most)):
            time += luck.choice([0, 1, 700, 5_000, 60_000, luck.randint(0, 3 * 86_400_000)])
            user = f"u{luck.randrange(members)}"
            kind = luck.choice(["text", "text", "image", "notice"])
            found.append(Message(f"c{number}", time, user, luck.randint(0, 90), kind, granularity))
    return found


def frame_of(spark: SparkSession, messages: list[Message]) -> DataFrame:
    return spark.createDataFrame(messages, MESSAGES.columns)
