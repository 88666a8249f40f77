"""The published marks of the data beside those of generated chats, and one hash for all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pyspark.sql import Row

from linnet.lab.generate import facts
from linnet.lab.report.parts import Figure


def data_sha256(chats: Sequence[Row]) -> str:
    """One hash of all chats (rows of `measure.CHATS`), which are in order of their names."""
    return hashlib.sha256("".join(f"{row.chat} {row.sha256}\n" for row in chats).encode()).hexdigest()


def figures(chats: Sequence[Row]) -> tuple[Figure, ...]:
    """What was counted in chats (rows of `measure.CHATS`), beside what was published."""
    count = len(chats)
    messages = sum(row.messages for row in chats)
    dyads = sum(row.members == 2 for row in chats)
    small = sum(row.members <= 30 for row in chats)
    in_seconds = sum(row.granularity == "s" for row in chats)
    # The first message of a chat follows none.
    pauses = messages - count
    within_60 = sum(row.pauses_60s for row in chats)
    within_120 = sum(row.pauses_120s for row in chats)
    texts = sum(row.texts for row in chats)
    return (
        _number("chats", "chats", count, facts.CHATS),
        _number("messages", "messages", messages, facts.MESSAGES),
        _number("members", "members", sum(row.members for row in chats), facts.USERS, "more than that"),
        _share("members.2", "chats with two members", dyads, count, facts.DYADS),
        _share("members.30", "chats with at most 30 members", small, count, facts.UP_TO_30),
        _number("members.largest", "members of the largest", _largest(chats, "members"), facts.LARGEST),
        _share(
            "granularity.s", "chats in seconds", in_seconds, count, facts.IN_SECONDS / facts.CHATS, places=2
        ),
        _share("pauses.60s", "pauses under 60 s", within_60, pauses, facts.WITHIN_60_S),
        _share("pauses.120s", "pauses under 120 s", within_120, pauses, facts.WITHIN_120_S),
        _share("kinds.text", "texts among messages", texts, messages, facts.TEXTS, "of chats from 2021"),
        _number("messages.largest", "messages of the largest", _largest(chats, "messages"), None),
        _number("messages.smallest", "messages of the smallest", min(row.messages for row in chats), None),
        _number("days.longest", "days of the longest", _largest(chats, "duration_ms") // 86_400_000, None),
    )


def _largest(chats: Sequence[Row], column: str) -> int:
    return max(int(row[column]) for row in chats)


def _number(id: str, title: str, measured: int, published: int | None, note: str = "") -> Figure:
    source = "" if published is None else facts.DATA
    return Figure(
        id=id, title=title, unit="", measured=measured, published=published, source=source, note=note
    )


def _share(
    id: str, title: str, part: int, whole: int, published: float, note: str = "", places: int = 0
) -> Figure:
    return Figure(
        id=id,
        title=title,
        unit="%",
        measured=round(100 * part / whole, 2) if whole else None,
        published=round(100 * published, places),
        source=facts.DATA,
        note=note,
    )
