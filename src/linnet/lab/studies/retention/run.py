"""The model of relays that forget, over every chat: integers for each chat, presence and retention.

Relays are always up and all of a room hold the same, so that what is delivered does not depend on how many
there are: one is worked out, and the report multiplies what is held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from pyspark.sql import DataFrame

from linnet.lab.relays.chat_arrays import FAR, ChatArrays
from linnet.lab.relays.held import held
from linnet.lab.relays.outcomes import EVERY_MODE, FIRST_DELIVERY
from linnet.lab.relays.presence import Presence
from linnet.lab.relays.profile import Profile, profile
from linnet.lab.relays.retention import retention_outcomes
from linnet.lab.studies.relays.run import Attending, Online, Row, Work, profile_rows, told_of_chats
from linnet.lab.studies.relays.workload import LARGE
from linnet.lab.studies.retention.sweep import mode_of

PAIRS_WITHIN, OWED_WITHIN = "pairs_within", "owed_within"
"""Pairs of event and other member who is online at the sending or within the retention after it.

A pair is owed if its member was online before the sending or at it. Who comes for the first time later wants
the history of a room, which members have; relays are for those who were away.
"""
PAIRS_EVER, OWED_EVER = "pairs_ever", "owed_ever"
"""Pairs whose member is online at the sending or at any time after it."""
OWED = "owed"
"""All pairs that are owed, whether or not the member ever comes back."""
HELD_EVENT_S, HELD_BYTE_S = "held_event_s", "held_byte_s"
"""What one relay holds, in seconds of each event and of each byte."""
CHATS, MEMBERS, EVENTS, PAIRS, MEMBER_S = "chats", "members", "events", "pairs", "member_s"
"""Sums of a chat; `MEMBER_S`: seconds that it lasts, for each member."""
WHOEVER_IS_ONLINE = 0
"""The margin of what does not depend on presence."""


class Presences(NamedTuple):
    """Several kinds of presence, one after the other."""

    kinds: tuple[Attending, ...]

    def of(self, work: Work, found: Profile) -> Iterator[Online]:
        """The presences of a chat that are this piece's work."""
        for attending in self.kinds:
            yield from attending.of(work, found)


def retentions_of(
    messages: DataFrame, presences: Presences, swept: Sequence[int], large: int = LARGE
) -> DataFrame:
    """Messages of chats to what each retention makes of them: grain (chat, margin, mode, measure)."""
    return told_of_chats(messages, lambda work: retention_rows(work, presences, swept), large)


def retention_rows(work: Work, presences: Presences, swept: Sequence[int]) -> Iterator[Row]:
    """All that is said about a chat in this piece of work."""
    index, found = work.ordered, profile(work.ordered)
    yield from profile_rows(work, found)
    if found.members < 2:
        return
    if work.piece <= 1:
        yield from _whoever_is_online(index.chat, swept)
    for number, margin, presence in presences.of(work, found):
        for measure, value in pairs_there(index.chat, presence).items():
            yield Row(number, EVERY_MODE, measure, {0: value})
        for outcome in retention_outcomes(index, presence, swept, margin):
            mode = mode_of(outcome.retention)
            yield Row(number, mode, FIRST_DELIVERY, outcome.first_delivery)
            yield Row(number, mode, PAIRS_WITHIN, {0: outcome.pairs.every})
            yield Row(number, mode, OWED_WITHIN, {0: outcome.pairs.owed})


def _whoever_is_online(chat: ChatArrays, swept: Sequence[int]) -> Iterator[Row]:
    events = len(chat.ts)
    sums = {
        CHATS: 1,
        MEMBERS: chat.members,
        EVENTS: events,
        PAIRS: events * (chat.members - 1),
        MEMBER_S: chat.members * int(chat.ts[-1]) // 1000,
    }
    for measure, value in sums.items():
        yield Row(WHOEVER_IS_ONLINE, EVERY_MODE, measure, {0: value})
    for retention in swept:
        kept, mode = held(chat, retention), mode_of(retention)
        yield Row(WHOEVER_IS_ONLINE, mode, HELD_EVENT_S, {0: kept.event_ms // 1000})
        yield Row(WHOEVER_IS_ONLINE, mode, HELD_BYTE_S, {0: kept.byte_ms // 1000})


def pairs_there(chat: ChatArrays, presence: Presence) -> dict[str, int]:
    """Pairs that are owed, and those that can be served at all.

    Found by when each member is first and last online, and so without what `pairs_within` is found by.
    """
    begin, until = np.full(chat.members, FAR), np.zeros(chat.members, dtype=np.int64)
    np.minimum.at(begin, presence.member, presence.start)
    np.maximum.at(until, presence.member, presence.end)
    events, before = len(chat.ts), int(np.searchsorted(chat.ts, begin).sum())
    ever = int(np.searchsorted(chat.ts, until).sum()) - events
    return {
        PAIRS_EVER: ever,
        OWED_EVER: ever - before,
        OWED: events * (chat.members - 1) - before,
    }
