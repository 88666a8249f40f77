"""The model of relays that forget, over every chat: integers for each chat, presence and retention.

Relays are always up and all of a room hold the same, so that what is delivered does not depend on how many
there are: one is worked out, and the report multiplies what is held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from pyspark.sql import DataFrame

from linnet.lab.relays.chat_arrays import ChatArrays
from linnet.lab.relays.held import event_bytes
from linnet.lab.relays.outcomes import EVERY_MODE, FIRST_DELIVERY
from linnet.lab.relays.presence import Presence
from linnet.lab.relays.profile import profile
from linnet.lab.relays.retention import RetentionOutcome, retention_outcomes
from linnet.lab.studies.relays.run import Attending, Row, Work, profile_rows, told_of_chats
from linnet.lab.studies.relays.workload import LARGE
from linnet.lab.studies.retention.sweep import mode_of

PAIRS_WITHIN = "pairs_within"
"""Pairs of event and other member who is online at the sending or within the retention after it."""
HELD_EVENT_S, HELD_BYTE_S = "held_event_s", "held_byte_s"
"""What one relay holds, in seconds of each event and of each byte."""
CHATS, MEMBERS, EVENTS, BYTES, PAIRS, PAIRS_EVER, MEMBER_S = (
    "chats",
    "members",
    "events",
    "bytes",
    "pairs",
    "pairs_ever",
    "member_s",
)
"""The same for every retention. `PAIRS_EVER`: pairs whose member is online at or after the sending at all;
`MEMBER_S`: seconds that the chat lasts, for each member."""


def retentions_of(
    messages: DataFrame, attending: Attending, swept: Sequence[int], large: int = LARGE
) -> DataFrame:
    """Messages of chats to what each retention makes of them: grain (chat, margin, mode, measure)."""
    return told_of_chats(messages, lambda work: retention_rows(work, attending, swept), large)


def retention_rows(work: Work, attending: Attending, swept: Sequence[int]) -> Iterator[Row]:
    """All that is said about a chat in this piece of work."""
    index, found = work.ordered, profile(work.ordered)
    yield from profile_rows(work, found)
    if found.members < 2:
        return
    for number, margin, presence in attending.of(work, found):
        for measure, value in _whatever_is_kept(index.chat, presence).items():
            yield Row(number, EVERY_MODE, measure, {0: value})
        for outcome in retention_outcomes(index, presence, swept, margin):
            yield from _told(number, outcome)


def _whatever_is_kept(chat: ChatArrays, presence: Presence) -> dict[str, int]:
    events = len(chat.ts)
    return {
        CHATS: 1,
        MEMBERS: chat.members,
        EVENTS: events,
        BYTES: int(event_bytes(chat).sum()),
        PAIRS: events * (chat.members - 1),
        PAIRS_EVER: pairs_ever(chat, presence),
        MEMBER_S: chat.members * int(chat.ts[-1]) // 1000,
    }


def pairs_ever(chat: ChatArrays, presence: Presence) -> int:
    """Pairs of event and other member who is still online after the sending.

    Found by when each member is last online, and so without what `pairs_within` is found by.
    """
    until = np.zeros(chat.members, dtype=np.int64)
    np.maximum.at(until, presence.member, presence.end)
    return int(np.searchsorted(chat.ts, until).sum()) - len(chat.ts)


def _told(margin: int, outcome: RetentionOutcome) -> Iterator[Row]:
    mode = mode_of(outcome.retention)
    yield Row(margin, mode, FIRST_DELIVERY, outcome.first_delivery)
    yield Row(margin, mode, PAIRS_WITHIN, {0: outcome.pairs_within})
    yield Row(margin, mode, HELD_EVENT_S, {0: outcome.held.event_ms // 1000})
    yield Row(margin, mode, HELD_BYTE_S, {0: outcome.held.byte_ms // 1000})
