"""The closed-form model over every chat: a task gives integers for each chat, margin and mode.

Deliveries are never rows; of a chat with a million messages a few hundred numbers come back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

from linnet.lab.relays.chat_arrays import ChatIndex, index_chat
from linnet.lab.relays.margins import chat_margins
from linnet.lab.relays.outcomes import ChatOutcome, outcomes
from linnet.lab.relays.phones import PhoneTrace, phone_presence
from linnet.lab.relays.presence import Presence, periods_around
from linnet.lab.relays.profile import Profile, profile
from linnet.lab.studies.relays.workload import ALL_MARGINS, LARGE, chat_of, pieces
from linnet.lab.tables import OUTCOMES

PROFILE = "profile"
"""The mode under which what a chat is like is kept."""

WEEK = 7 * 86_400_000

_ARROW = pa.schema(
    [
        ("chat", pa.string()),
        ("margin", pa.int32()),
        ("mode", pa.string()),
        ("measure", pa.string()),
        ("bins", pa.list_(pa.int32())),
        ("counts", pa.list_(pa.int64())),
    ]
)


class Row(NamedTuple):
    """A histogram of a chat, or a sum."""

    margin: int
    mode: str
    measure: str
    counts: Mapping[int, int]


class Online(NamedTuple):
    """A presence of a chat's members, and the number it goes by."""

    number: int
    margin: int | None
    """Milliseconds, if it comes from a margin."""
    presence: Presence


class Work(NamedTuple):
    """A chat, or one margin of a large one."""

    chat: str
    ordered: ChatIndex
    seconds: bool
    """Whether its clock shows seconds."""
    piece: int = ALL_MARGINS
    began: int = 0
    """When its first message was sent."""


class Attending(NamedTuple):
    """Who is online when: by margins, or like phones if there are traces of some."""

    phones: Sequence[PhoneTrace] = ()
    seed: int = 1

    def of(self, work: Work, profile: Profile) -> Iterator[Online]:
        """The presences of a chat that are this piece's work."""
        index, piece = work.ordered, work.piece
        if self.phones:
            if piece <= 1:
                luck = chat_luck(self.seed, work.chat)
                yield Online(0, None, phone_presence(index, self.phones, luck, work.began % WEEK))
            return
        for number, margin in enumerate(chat_margins(profile.longest_pause), 1):
            if piece in (ALL_MARGINS, number):
                yield Online(number, margin, periods_around(index, margin))


def chat_luck(seed: int, chat: str) -> int:
    """A seed for one chat: its members get other phones than those of the next."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{chat}".encode()).digest()[:8])


def outcome_rows(work: Work, attending: Attending) -> Iterator[Row]:
    """All that is said about a chat in this piece of work."""
    found = profile(work.ordered)
    yield from profile_rows(work, found)
    if found.members < 2:
        return
    for number, margin, presence in attending.of(work, found):
        yield from _told(number, outcomes(work.ordered, presence, margin))


def profile_rows(work: Work, found: Profile) -> Iterator[Row]:
    """What a chat is like; told once, in however many pieces it is worked on."""
    if work.piece <= 1:
        for name, value in {**found._asdict(), "seconds": int(work.seconds)}.items():
            yield Row(0, PROFILE, name, {0: value})


def _told(margin: int, outcome: ChatOutcome) -> Iterator[Row]:
    for (mode, measure), counts in outcome.histograms.items():
        yield Row(margin, mode, measure, counts)
    for (mode, measure), value in outcome.totals.items():
        yield Row(margin, mode, measure, {0: value})


def outcomes_of(messages: DataFrame, attending: Attending, large: int = LARGE) -> DataFrame:
    """Messages of chats to what became of them: grain (chat, margin, mode, measure)."""
    return told_of_chats(messages, lambda work: outcome_rows(work, attending), large)


def told_of_chats(
    messages: DataFrame, told: Callable[[Work], Iterator[Row]], large: int = LARGE
) -> DataFrame:
    """What is told of each chat, or of each margin of a large one: grain (chat, margin, mode, measure)."""
    return pieces(messages, large).groupBy("chat", "piece").applyInArrow(_worker(told), OUTCOMES.columns)


def work_of(key: tuple[pa.Scalar, ...], table: pa.Table) -> Work:
    """The piece of work of a group of messages."""
    arrays, seconds = chat_of(table)
    began = pc.min(table["ts"]).as_py()
    return Work(key[0].as_py(), index_chat(arrays), seconds, key[1].as_py(), began)


def _worker(told: Callable[[Work], Iterator[Row]]) -> Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]:
    def work(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        return to_arrow(key[0].as_py(), told(work_of(key, table)))

    return work


def to_arrow(chat: str, rows: Iterator[Row]) -> pa.Table:
    """Rows of a chat as a table of `OUTCOMES`."""
    told = list(rows)
    columns = [
        [chat] * len(told),
        [row.margin for row in told],
        [row.mode for row in told],
        [row.measure for row in told],
        [list(row.counts) for row in told],
        [list(row.counts.values()) for row in told],
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.Table.from_arrays(arrays, schema=_ARROW)
