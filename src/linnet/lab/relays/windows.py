"""Which pieces of which chats are run through the protocol, to hold the model against it.

The sample is stratified: dyads, small and large groups, each with few, some and many messages, as evenly
as there are chats. Of each chat one window of consecutive messages is cut, at a place that the seed
draws. A run costs about as much as messages times members, so that this product is bounded as well: 200
chats, five margins and both modes then take seven minutes on two cores if most chats are short, and
twenty-five if all windows are full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from linnet.lab.relays.chat_arrays import ChatIndex, chat_arrays, index_chat
from linnet.lab.relays.margins import SHORTEST, chat_margins
from linnet.lab.relays.outcomes import P2P, RELAYS
from linnet.lab.relays.presence import Presence, periods_around
from linnet.lab.relays.protocol import relays_for
from linnet.lab.stages import schema_of
from linnet.lab.tables import WINDOWS

CHATS = 200
LONGEST = 300
"""Messages of a window at most."""
WORK = 2_000
"""Messages times members of a window at most, where that leaves `FEWEST` messages."""
FEWEST = 20

SIZES = {"dyads": (2, 2), "3-9": (3, 9), "10-30": (10, 30)}
COUNTS = {"up to 100": (2, 100), "101-1000": (101, 1000), "over 1000": (1001, 2**62)}

PresenceOf = Callable[[str, ChatIndex, int], Presence]
"""Who is online when, by the name of a chat, its window, and a margin in milliseconds."""


def around_sends(chat: str, index: ChatIndex, margin: int) -> Presence:
    """The presence of margins."""
    return periods_around(index, margin)


def sample(profiles: DataFrame, seed: int, chats: int = CHATS) -> DataFrame:
    """So many chats of `PROFILES`, or all if there are fewer: chat, members, max_iat_ms and stratum, by chat.

    Groups of 2 to 30 that have margins. Strata give one chat each, drawn by the seed, turn after turn until
    there are enough; so each has an equal part, as far as it has chats.
    """
    sizes = _class_of("members", SIZES)
    strata = F.concat_ws(", ", sizes, F.concat(_class_of("messages", COUNTS), F.lit(" messages")))
    usable = profiles.where(sizes.isNotNull() & (F.col("max_iat_ms") > SHORTEST) & (F.col("messages") > 1))
    drawn = Window.partitionBy("stratum").orderBy(F.xxhash64(F.lit(seed), "chat"), "chat")
    return (
        usable.withColumn("stratum", strata)
        .withColumn("turn", F.row_number().over(drawn))
        .orderBy("turn", "stratum", "chat")
        .limit(chats)
        .select("chat", "members", "max_iat_ms", "stratum")
    )


def _class_of(column: str, classes: dict[str, tuple[int, int]]) -> Column:
    names = [F.when(F.col(column).between(*bounds), F.lit(name)) for name, bounds in classes.items()]
    return F.coalesce(*names)


def cut(
    messages: DataFrame, sampled: DataFrame, seed: int, longest: int = LONGEST, work: int = WORK
) -> DataFrame:
    """One window of each chat that was sampled, beside its columns, by chat.

    `said` is ARRAY<STRUCT<number, ts, user, chars>>, the number being the place in the chat.
    """
    of_chat = Window.partitionBy("chat")
    in_order = of_chat.orderBy("ts", "user", "chars", "kind")
    by_work = F.greatest(F.lit(FEWEST), F.floor(F.lit(work) / F.col("members")))
    length = F.least(F.lit(longest), by_work, F.col("all"))
    first = F.pmod(F.xxhash64(F.lit(seed), "chat", F.lit("window")), F.col("all") - F.col("length") + 1)
    numbered = (
        messages.join(F.broadcast(sampled), "chat")
        .withColumn("number", F.row_number().over(in_order) - 1)
        .withColumn("all", F.count("*").over(of_chat))
        .withColumn("length", length)
        .withColumn("place", F.col("number") - first)
    )
    said = F.sort_array(F.collect_list(F.struct("number", "ts", "user", "chars"))).alias("said")
    inside = F.col("place").between(F.lit(0), F.col("length") - 1)
    return numbered.where(inside).groupBy("chat", "members", "max_iat_ms", "stratum").agg(said)


def cut_windows(
    messages: DataFrame,
    sampled: DataFrame,
    seed: int,
    longest: int = LONGEST,
    work: int = WORK,
    presence_of: PresenceOf = around_sends,
) -> DataFrame:
    """A table of `WINDOWS`: for each chat that was sampled each of its margins in both modes.

    Margins are those of the whole chat; `presence_of` must be a module's function or a closure over
    small values.
    """
    schema = to_arrow_schema(schema_of(WINDOWS))

    def spread(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield pa.RecordBatch.from_pylist(list(window_rows(row, presence_of)), schema)

    return cut(messages, sampled, seed, longest, work).mapInArrow(spread, WINDOWS.columns)


def window_rows(row: dict[str, Any], presence_of: PresenceOf = around_sends) -> Iterator[dict[str, Any]]:
    """The rows of `WINDOWS` of a row of `cut`."""
    said = row["said"]
    columns = ([each[name] for each in said] for name in ("ts", "user", "chars"))
    chat = chat_arrays(*columns)
    index = index_chat(chat)
    for number, margin in enumerate(chat_margins(row["max_iat_ms"]), 1):
        member, start, end = (column.tolist() for column in presence_of(row["chat"], index, margin))
        for mode in (P2P, RELAYS):
            yield {
                "chat": row["chat"],
                "margin": number,
                "mode": mode,
                "margin_ms": margin,
                "stratum": row["stratum"],
                "members": chat.members,
                "relays": 0 if mode == P2P else relays_for(row["members"]),
                "ts": chat.ts.tolist(),
                "user": chat.user.tolist(),
                "chars": chat.chars.tolist(),
                "member": member,
                "start_ms": start,
                "end_ms": end,
            }
