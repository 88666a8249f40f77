"""Whether model and protocol say the same of a chat, and if not, what differs first.

With relays every first reception is compared. Without, the model is that of senders who deliver by
themselves, while our members also tell each other what they have; so what came sooner than its
sender could bring it, or though sender and receiver never met, is *backfilled*, and counted apart.
First deliveries are compared in both, for the first to have an event has it from its sender or its relay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
from msgspec import Struct
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from linnet.lab.errors import CheckFailed
from linnet.lab.relays.attendance import attend
from linnet.lab.relays.chat_arrays import ChatArrays, index_chat
from linnet.lab.relays.deliveries import UNDELIVERED, first_deliveries
from linnet.lab.relays.outcomes import P2P
from linnet.lab.relays.presence import Presence
from linnet.lab.relays.protocol import KEY, window_chat, window_presence
from linnet.lab.relays.receptions import (
    Reception,
    direct_pushes,
    relayed_receptions,
    synchronised_receptions,
)
from linnet.lab.stages import schema_of
from linnet.lab.tables import AGREEMENTS

_SUMS = ("events", "receptions", "backfilled", "unforeseen", "held", "differences")


class Case(NamedTuple):
    """Which run is looked at."""

    chat: str
    margin: int
    margin_ms: int
    mode: str

    def __str__(self) -> str:
        return f"chat {self.chat}, margin {self.margin} ({self.margin_ms} ms), {self.mode}"


class Timeline(NamedTuple):
    """What an engine says of one chat."""

    first: Sequence[int]
    """When each event first reached anybody but its sender; `UNDELIVERED` if never."""
    receptions: Sequence[Reception]
    """At most one for each event and receiver."""


class Agreement(Struct, frozen=True):
    """Two timelines held against each other."""

    events: int
    """First deliveries that were compared."""
    receptions: int
    """Receptions that were compared, in one timeline or both."""
    backfilled: int
    """Receptions of the protocol that others brought; not compared."""
    differences: int
    first: str | None
    """The first difference in words."""


class Verdict(Struct, frozen=True):
    """All runs of a sample together."""

    runs: int
    chats: int
    events: int
    receptions: int
    backfilled: int
    unforeseen: int
    """Backfilled receptions that members who tell each other all they know would not have had then."""
    held: int
    differences: int
    first: str | None


def model_timeline(chat: ChatArrays, presence: Presence, mode: str) -> Timeline:
    """The model: direct pushes without relays, every first reception with them."""
    deliveries = first_deliveries(attend(index_chat(chat), presence))
    if mode == P2P:
        return Timeline(deliveries.p2p.tolist(), direct_pushes(chat, presence))
    return Timeline(deliveries.relays.tolist(), relayed_receptions(chat, presence))


def timeline(events: int, receptions: Sequence[Reception]) -> Timeline:
    """What receptions alone say."""
    first = [UNDELIVERED] * events
    for event, _, time in receptions:
        first[event] = time if first[event] == UNDELIVERED else min(first[event], time)
    return Timeline(first, receptions)


def compare(model: Timeline, protocol: Timeline, case: Case) -> Agreement:
    """Hold the protocol against the model."""
    wanted = {(each.event, each.receiver): each.time for each in model.receptions}
    found = {(each.event, each.receiver): each.time for each in protocol.receptions}
    receptions = backfilled = 0
    differing: list[str] = []
    for event, (expected, seen) in enumerate(zip(model.first, protocol.first, strict=True)):
        if expected != seen:
            differing.append(f"{case}: event {event} first reaches anybody {_both(expected, seen)}")
    for event, receiver in sorted(wanted | found):
        due = wanted.get((event, receiver), UNDELIVERED)
        came = found.get((event, receiver), UNDELIVERED)
        if case.mode == P2P and came != UNDELIVERED and (due == UNDELIVERED or came < due):
            backfilled += 1
            continue
        receptions += 1
        if due != came:
            differing.append(f"{case}: event {event} reaches member {receiver} {_both(due, came)}")
    first = differing[0] if differing else None
    return Agreement(len(model.first), receptions, backfilled, len(differing), first)


def _both(model: int, protocol: int) -> str:
    return f"{_when(model)} by the model, {_when(protocol)} by the protocol"


def _when(time: int) -> str:
    return "never" if time == UNDELIVERED else f"at {time} ms"


def agreements(windows: DataFrame, runs: DataFrame) -> DataFrame:
    """Runs (`PROTOCOL_RUNS`) held against the model of their windows (`WINDOWS`): a table of `AGREEMENTS`.

    `CheckFailed` out of a task if a window was not run.
    """
    schema = to_arrow_schema(schema_of(AGREEMENTS))

    def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pylist([_agreement_row(row) for row in batch.to_pylist()], schema)

    return windows.join(runs, list(KEY), "left").mapInArrow(look, AGREEMENTS.columns)


def _agreement_row(row: dict[str, Any]) -> dict[str, Any]:
    case = Case(row["chat"], row["margin"], row["margin_ms"], row["mode"])
    if row["event"] is None:
        raise CheckFailed(f"{case}: was not run through the protocol")
    chat, presence = window_chat(row), window_presence(row)
    received = [
        Reception(*each) for each in zip(row["event"], row["receiver"], row["received_ms"], strict=True)
    ]
    model = model_timeline(chat, presence, case.mode)
    found = compare(model, timeline(len(chat.ts), received), case)
    return {
        **{name: row[name] for name in (*KEY, "stratum", "members", "held")},
        "events": found.events,
        "receptions": found.receptions,
        "backfilled": found.backfilled,
        "unforeseen": _unforeseen(chat, presence, model, received) if case.mode == P2P else 0,
        "differences": found.differences,
        "first": found.first,
    }


def _unforeseen(chat: ChatArrays, presence: Presence, model: Timeline, received: list[Reception]) -> int:
    foreseen = synchronised_receptions(chat, presence)
    return len(set(received) - {*foreseen.direct, *foreseen.backfilled, *model.receptions})


def verdict(table: DataFrame) -> Verdict:
    """All rows of `AGREEMENTS` together, with the first difference of the first run, by key, that has any."""
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _SUMS]
    row = table.agg(F.count("*").alias("runs"), F.countDistinct("chat").alias("chats"), *sums).first()
    differing = table.where(F.col("differences") > 0).orderBy(*KEY).select("first").first()
    counts = {} if row is None else row.asDict()
    return Verdict(**counts, first=None if differing is None else differing["first"])
