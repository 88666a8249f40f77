"""Chats for the study: which messages count, and how work is cut so that one large chat holds nobody up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from linnet.lab.relays.chat_arrays import ChatArrays, chat_arrays
from linnet.lab.relays.margins import MARGINS
from linnet.lab.relays.phones import PhoneTrace
from linnet.lab.stages import Made

LARGE = 200_000
"""Messages from which on a chat's margins are separate pieces of work."""

ALL_MARGINS = 0
"""The piece of a chat that is not cut."""

MOST_PHONES = 10_000
"""Traces that are handed to every task; more would be no more real."""


def sent(messages: DataFrame) -> DataFrame:
    """What people said; joins and the like are not sent by anybody."""
    return messages.where(f.col("kind") != "notice").select("chat", "ts", "user", "chars", "granularity")


def pieces(messages: DataFrame, large: int = LARGE) -> DataFrame:
    """Messages with the piece of work that they belong to: grain (chat, piece).

    A chat can be a thousand times another. A large one is worked on once for each margin, so that its
    messages appear as often, and no task has more than one margin of it to do.
    """
    sizes = messages.groupBy("chat").agg((f.count("*") >= large).alias("is_large"))
    each_margin = f.array(*(f.lit(number) for number in range(1, MARGINS + 1)))
    piece = f.explode(f.when(f.col("is_large"), each_margin).otherwise(f.array(f.lit(ALL_MARGINS))))
    return messages.join(f.broadcast(sizes), "chat").withColumn("piece", piece).drop("is_large")


def chat_of(table: pa.Table) -> tuple[ChatArrays, bool]:
    """One chat out of its messages, and whether its clock shows seconds."""
    users = table["user"].combine_chunks().dictionary_encode().indices
    chat = chat_arrays(
        table["ts"].to_numpy(), users.to_numpy(zero_copy_only=False), table["chars"].to_numpy()
    )
    return chat, table["granularity"][0].as_py() != "min"


def phone_traces(sessions: Made) -> Sequence[PhoneTrace]:
    """Traces of phones for every task, in the order of their names, so many at most."""
    chosen = sessions.frame.select("device").distinct().orderBy("device").limit(MOST_PHONES)
    table = sessions.frame.join(f.broadcast(chosen), "device").orderBy("device", "start_ms").toArrow()
    device = table["device"].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    start, end, length = (table[name].to_numpy() for name in ("start_ms", "end_ms", "week_ms"))
    firsts = np.flatnonzero(np.diff(device, prepend=-1))
    bounds = [*firsts.tolist(), len(device)]
    return [
        PhoneTrace(start[begin:stop], end[begin:stop], int(length[begin])) for begin, stop in pairwise(bounds)
    ]
