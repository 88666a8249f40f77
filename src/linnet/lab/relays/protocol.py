"""The protocol engine: a piece of a chat through the shipped rooms and relays machines.

It gives what the closed-form models give, from the program that people run: when each event first reached
each member. How a protocol with links to dial can be as prompt as a model without any is said in
`linnet.sim.rooms.instant_delivery`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from linnet.lab.errors import CheckFailed
from linnet.lab.relays.chat_arrays import ChatArrays
from linnet.lab.relays.presence import Presence
from linnet.lab.relays.receptions import Reception
from linnet.lab.stages import schema_of
from linnet.lab.tables import PROTOCOL_RUNS
from linnet.sim.rooms.instant_delivery import PacedFailed, Sending, Stay, instants, replay

KEY = ("chat", "margin", "mode")
TASKS = 256
"""Into how many tasks runs are spread: one takes a second or so, and the longest must not be met last."""

_LARGE = 10


class ProtocolRun(NamedTuple):
    """What the protocol made of a chat."""

    receptions: list[Reception]
    """The first of each event at each member but its sender, by event and receiver."""
    held: int
    """Receptions that were not handed to the application at the same instant."""
    instants: int
    messages: int
    """Messages between machines."""


def relays_for(members: int) -> int:
    """Relays of a room: one below ten members, else two (Schichtholz 2024, section 6.3.2)."""
    return 1 if members < _LARGE else 2


def run_protocol(chat: ChatArrays, presence: Presence, relays: int, seed: int = 1) -> ProtocolRun:
    """Run a chat through the machines, with so many relays or none."""
    columns = (chat.ts.tolist(), chat.user.tolist(), chat.chars.tolist())
    sends = [
        (time, Sending(event, user, chars))
        for event, (time, user, chars) in enumerate(zip(*columns, strict=True))
    ]
    stays = map(Stay, *(column.tolist() for column in presence))
    result = replay(instants(sends, stays), chat.members, relays, seed)
    receptions = [Reception(*arrival) for arrival in result.arrivals]
    return ProtocolRun(receptions, result.held, result.instants, result.messages)


def protocol_runs(windows: DataFrame, seed: int = 1, tasks: int = TASKS) -> DataFrame:
    """Run every window (`WINDOWS`): a table of `PROTOCOL_RUNS`, one row for each.

    `CheckFailed` out of a task if a window cannot be run as it is.
    """
    schema = to_arrow_schema(schema_of(PROTOCOL_RUNS))

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield pa.RecordBatch.from_pylist([_run_row(row, seed)], schema)

    return windows.repartition(tasks, *KEY).mapInArrow(run, PROTOCOL_RUNS.columns)


def window_chat(row: dict[str, Any]) -> ChatArrays:
    """The messages of a row of `WINDOWS`."""
    ts, user, chars = np.array(row["ts"], np.int64), np.array(row["user"], np.int32), row["chars"]
    return ChatArrays(ts, user, np.array(chars, np.int32), row["members"])


def window_presence(row: dict[str, Any]) -> Presence:
    """Who is online when, in a row of `WINDOWS`."""
    start, end = np.array(row["start_ms"], np.int64), np.array(row["end_ms"], np.int64)
    return Presence(np.array(row["member"], np.int32), start, end)


def _run_row(row: dict[str, Any], seed: int) -> dict[str, Any]:
    try:
        run = run_protocol(window_chat(row), window_presence(row), row["relays"], seed)
    except (PacedFailed, ValueError) as error:
        where = f"chat {row['chat']}, margin {row['margin']}, {row['mode']}"
        raise CheckFailed(f"{where}: the protocol could not be run: {error}") from error
    return {
        **{name: row[name] for name in KEY},
        "event": [each.event for each in run.receptions],
        "receiver": [each.receiver for each in run.receptions],
        "received_ms": [each.time for each in run.receptions],
        "held": run.held,
        "instants": run.instants,
        "messages": run.messages,
    }
