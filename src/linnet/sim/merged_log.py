"""The merged log: what all nodes of a room recorded, in the columns in which experiments are published.

``Time [s] | User | Action | Type | Event ID`` (Schichtholz 2024, sections 6.1.4 and 6.1.6): times are
relative, events are numbered by their first appearance. Rows of a simulation and of live nodes' trace files
are the same, so is what is made of them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from math import inf
from operator import itemgetter
from typing import Any

from msgspec import Struct

from linnet.core.ids import PeerId
from linnet.sim.traffic import type_of
from linnet.trace.records import Kind, Row

SEND = "send"
RECEIVE = "receive"
CACHE = "cache-event"
RESYNC = "resync"
RECEIVE_RESYNC = "receive-resync"
REPLY_RESYNC = "reply-resync"
REJECT_RESYNC = "reject-resync"
RESYNC_RESPONSE = "resync-response"
TURN_AWAY = "turn-away"
"""Not in the published log: a relay does not even greet. Whoever learns so that it is banned asks no more."""
ONLINE = "online"
OFFLINE = "offline"

COLUMNS = ("Time [s]", "User", "Action", "Type", "Event ID")
_RESYNCS = frozenset({RESYNC, RECEIVE_RESYNC, REPLY_RESYNC, REJECT_RESYNC, RESYNC_RESPONSE})


class Entry(Struct, frozen=True):
    """One line of the log."""

    time: float
    """Seconds since the log begins."""
    user: str
    action: str
    type: str | None = None
    """The type of the event, in the words of Matrix where it has one there."""
    event: int | None = None
    """Its number."""

    def cells(self) -> tuple[str, str, str, str, str]:
        """The line as text."""
        event = "" if self.event is None else str(self.event)
        return f"{self.time:.4f}", self.user, self.action, self.type or "", event


class MergedLog(Struct, frozen=True):
    """The log of one run."""

    entries: tuple[Entry, ...]
    ids: tuple[bytes, ...]
    """The event of each number; numbers begin with 1."""
    begin: float
    """Unix time at which the log begins."""

    def number(self, event: bytes) -> int | None:
        """The number of an event that the log speaks of."""
        return self.ids.index(event) + 1 if event in self.ids else None

    def find(
        self, action: str | None = None, user: str | None = None, event: int | None = None
    ) -> list[Entry]:
        """The lines of this action, user and event; None is any."""
        return [
            entry
            for entry in self.entries
            if action in (None, entry.action) and user in (None, entry.user) and event in (None, entry.event)
        ]

    def to_csv(self) -> str:
        """The log as CSV with a header."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(entry.cells() for entry in self.entries)
        return out.getvalue()

    def to_builtins(self) -> list[dict[str, Any]]:
        """The log for JSON, ids in full."""
        return [
            {
                "time": round(entry.time, 6),
                "user": entry.user,
                "action": entry.action,
                "type": entry.type,
                "event": entry.event,
                "id": None if entry.event is None else self.ids[entry.event - 1].hex(),
            }
            for entry in self.entries
        ]


def merge(
    rows: Iterable[Row],
    names: Mapping[PeerId, str],
    relays: Iterable[bytes] = (),
    *,
    topic: bytes | None = None,
    begin: float | None = None,
    end: float = inf,
) -> MergedLog:
    """The log of these nodes, from rows in any order.

    `names` says who is who; rows of others are left out. What was before `begin`, such as the set-up of
    the room, is left out too, and so is what came after `end`; without a beginning the log begins with its
    first line. With a `topic` only this room is spoken of.
    """
    keeping = frozenset(relays)
    ordered = sorted(rows, key=itemgetter(0, 1, 2))
    numbers: dict[bytes, int] = {}
    entries: list[Entry] = []
    for row in ordered:
        action = _action(row, keeping)
        user = names.get(PeerId(row.node))
        if action is None or user is None or row.time > end or (begin is not None and row.time < begin):
            continue
        if topic is not None and row.topic not in (None, topic):
            continue
        begin = row.time if begin is None else begin
        number = None if row.event is None else numbers.setdefault(row.event, len(numbers) + 1)
        kind = row.note if number is not None and row.note not in _RESYNCS else None
        entries.append(Entry(row.time - begin, user, action, kind and type_of(kind), number))
    return MergedLog(tuple(entries), tuple(numbers), begin or 0.0)


def _action(row: Row, relays: frozenset[bytes]) -> str | None:
    """What a record is called in the log; None if it is not in it."""
    match row.kind:
        case Kind.PUBLISHED:
            return SEND
        case Kind.RECEIVED if row.event is not None:
            return RECEIVE
        case Kind.STORED if row.node in relays and row.event is not None:
            return CACHE
        case Kind.RESYNC:
            return row.note if row.note in _RESYNCS else None
        case Kind.REJECTED if row.node in relays and row.note == "greet":
            return TURN_AWAY
        case Kind.ONLINE:
            return ONLINE
        case Kind.OFFLINE:
            return OFFLINE
        case _:
            return None
