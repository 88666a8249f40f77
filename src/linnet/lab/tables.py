"""The tables of the lab: their columns, each in the words of SQL, in one place.

Times are integer milliseconds and sums are integers, so that the same inputs give the same table bit for
bit on any number of machines. A change of columns or of their meaning is a new `version`: tables of
older versions are not read, but made again.
"""

from __future__ import annotations

from msgspec import Struct

from linnet.trace.records import SCHEMA


class Table(Struct, frozen=True):
    """One kind of table."""

    name: str
    version: int
    columns: str
    """DDL as Spark reads it."""
    grain: tuple[str, ...]
    """Columns that together name a row; empty if rows may repeat."""


MESSAGES = Table(
    "messages",
    1,
    "chat STRING NOT NULL, ts BIGINT NOT NULL, user STRING NOT NULL, chars INT NOT NULL, "
    "kind STRING NOT NULL, granularity STRING NOT NULL",
    (),
)
"""Who said how much when: `ts` in Unix milliseconds; `granularity` of its clock: ``ms``, ``s`` or ``min``.

`kind` is ``text``, ``image``, ``audio``, ``video``, ``file``, ``notice`` (joins, topic changes and the like).
"""

TEXTS = Table("texts", 1, MESSAGES.columns + ", text STRING NOT NULL", ())
"""Messages with what was said; only if somebody asked for it."""

QUARANTINE = Table(
    "quarantine",
    1,
    "source STRING NOT NULL, file STRING NOT NULL, line BIGINT NOT NULL, reason STRING NOT NULL, "
    "content STRING NOT NULL",
    (),
)
"""Rows that could not be used; `line` from 1; `content` is cut at 200, and empty unless text is kept."""

LATENCIES = Table(
    "latencies",
    1,
    "origin STRING NOT NULL, target STRING NOT NULL, oneway_us BIGINT NOT NULL",
    ("origin", "target"),
)
"""One-way delays between regions in microseconds."""

SESSIONS = Table(
    "sessions",
    1,
    "device STRING NOT NULL, start_ms BIGINT NOT NULL, end_ms BIGINT NOT NULL, week_ms BIGINT NOT NULL",
    ("device", "start_ms"),
)
"""When a device was online: [start, end) in milliseconds since the start of its trace of `week_ms`."""

SUBSCRIPTIONS = Table(
    "subscriptions", 1, "subscriber STRING NOT NULL, topic STRING NOT NULL", ("subscriber", "topic")
)

HISTOGRAMS = Table(
    "histograms",
    1,
    "chat STRING NOT NULL, margin INT NOT NULL, mode STRING NOT NULL, measure STRING NOT NULL, "
    "bin INT NOT NULL, count BIGINT NOT NULL",
    ("chat", "margin", "mode", "measure", "bin"),
)
"""How often something took how long; `bin` by `linnet.lab.bins`, -1 for what never came."""

TOTALS = Table(
    "totals",
    1,
    "chat STRING NOT NULL, margin INT NOT NULL, mode STRING NOT NULL, measure STRING NOT NULL, "
    "value BIGINT NOT NULL",
    ("chat", "margin", "mode", "measure"),
)
"""Sums over a chat."""

PROFILES = Table(
    "profiles",
    1,
    "chat STRING NOT NULL, granularity STRING NOT NULL, members INT NOT NULL, messages BIGINT NOT NULL, "
    "chars BIGINT NOT NULL, duration_ms BIGINT NOT NULL, median_iat_ms BIGINT NOT NULL, "
    "max_iat_ms BIGINT NOT NULL, estimate_ms BIGINT NOT NULL, selected BOOLEAN NOT NULL",
    ("chat",),
)
"""What each chat is like, and whether it passes the selection."""

TRACE = Table(
    "trace",
    1,
    ", ".join(f"{name} {kind}{'' if nullable else ' NOT NULL'}" for name, kind, nullable in SCHEMA),
    ("node", "counter"),
)
"""What nodes recorded (`linnet.trace.records`)."""
