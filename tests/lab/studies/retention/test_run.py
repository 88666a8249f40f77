"""What each retention makes of chats: pair by pair in plain Python, and through Spark."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pyspark.sql import SparkSession
from tests.lab.studies.relays.small_chats import Message, drawn_messages, frame_of

from linnet.lab.bins import NEVER, count_bins
from linnet.lab.relays.chat_arrays import chat_arrays, index_chat
from linnet.lab.relays.held import EVENT_OVERHEAD
from linnet.lab.relays.outcomes import EVERY_MODE, FIRST_DELIVERY, P2P, RELAYS, outcomes
from linnet.lab.relays.phones import PhoneTrace
from linnet.lab.relays.profile import profile
from linnet.lab.studies.relays.run import Attending, Work
from linnet.lab.studies.relays.workload import LARGE, sent
from linnet.lab.studies.retention.run import (
    CHATS,
    EVENTS,
    HELD_BYTE_S,
    HELD_EVENT_S,
    MEMBER_S,
    MEMBERS,
    OWED,
    OWED_EVER,
    OWED_WITHIN,
    PAIRS,
    PAIRS_EVER,
    PAIRS_WITHIN,
    Presences,
    retention_rows,
    retentions_of,
)
from linnet.lab.studies.retention.sweep import UNLIMITED, mode_of

SWEPT = (0, 800, 60_000, 86_400_000, UNLIMITED)
TRACE = PhoneTrace(np.array([0, 50_000_000]), np.array([9_000_000, 60_000_000]), 604_800_000)
BOTH = Presences((Attending(), Attending([TRACE], 3)))

Told = dict[tuple[str, int, str, str], dict[int, int]]
Periods = list[list[tuple[int, int]]]


def works(messages: list[Message]) -> Iterator[Work]:
    """Each chat as a piece of work, made without Spark."""
    for chat in sorted({message.chat for message in messages}):
        rows = [message for message in messages if message.chat == chat and message.kind != "notice"]
        if rows:
            columns = [m.ts for m in rows], [m.user for m in rows], [m.chars for m in rows]
            index = index_chat(chat_arrays(*columns))
            yield Work(chat, index, rows[0].granularity == "s", began=min(m.ts for m in rows))


def plainly(messages: list[Message]) -> Told:
    return {
        (work.chat, row.margin, row.mode, row.measure): dict(row.counts)
        for work in works(messages)
        for row in retention_rows(work, BOTH, SWEPT)
    }


def through_spark(spark: SparkSession, messages: list[Message], large: int = LARGE) -> Told:
    rows = retentions_of(sent(frame_of(spark, messages)), BOTH, SWEPT, large).collect()
    told = {
        (row.chat, row.margin, row.mode, row.measure): dict(zip(row.bins, row.counts, strict=True))
        for row in rows
    }
    assert len(told) == len(rows), "the grain"
    return told


def first_together(one: list[tuple[int, int]], other: list[tuple[int, int]], since: int) -> int | None:
    """The first instant from `since` on at which both are online."""
    found = [
        max(begin, start, since)
        for begin, end in one
        for start, stop in other
        if max(begin, start, since) < min(end, stop)
    ]
    return min(found, default=None)


def counted(work: Work, periods: Periods, retention: int) -> dict[str, dict[int, int]]:
    """Event by event and member by member."""
    chat = work.ordered.chat
    within, owed, firsts, event_ms, byte_ms = 0, 0, [], 0, 0
    for time, sender, chars in zip(chat.ts.tolist(), chat.user.tolist(), chat.chars.tolist(), strict=True):
        arrivals = []
        for member in range(chat.members):
            if member == sender:
                continue
            back = first_together(periods[member], [(time, UNLIMITED)], time)
            if back is not None and back - time <= retention:
                within += 1
                owed += min(periods[member])[0] <= time
                arrivals.append(back)
            pushed = first_together(periods[sender], periods[member], time)
            arrivals += [] if pushed is None else [pushed]
        firsts.append(min(arrivals) - time if arrivals else NEVER)
        kept = min(int(chat.ts[-1]) - time, retention)
        event_ms, byte_ms = event_ms + kept, byte_ms + kept * (chars + EVENT_OVERHEAD)
    return {
        FIRST_DELIVERY: count_bins(np.array(firsts)),
        PAIRS_WITHIN: {0: within},
        OWED_WITHIN: {0: owed},
        HELD_EVENT_S: {0: event_ms // 1000},
        HELD_BYTE_S: {0: byte_ms // 1000},
    }


def counted_there(work: Work, periods: Periods) -> dict[str, dict[int, int]]:
    """Pairs that are owed, and those whose member is ever online after the sending, one by one."""
    chat, pairs = work.ordered.chat, []
    for time, sender in zip(chat.ts.tolist(), chat.user.tolist(), strict=True):
        others = (periods[member] for member in range(chat.members) if member != sender)
        pairs += [(min(stays)[0] <= time, max(stays)[1] > time) for stays in others]
    return {
        OWED: {0: sum(owed for owed, _ in pairs)},
        OWED_EVER: {0: sum(owed and back for owed, back in pairs)},
        PAIRS_EVER: {0: sum(back for _, back in pairs)},
    }


def test_each_retention_gives_what_counting_gives() -> None:
    messages = drawn_messages(31, chats=5, most=14)
    told, looked = plainly(messages), set[int]()
    for work in works(messages):
        if work.ordered.chat.members < 2:
            continue
        for online in BOTH.of(work, profile(work.ordered)):
            periods: Periods = [[] for _ in range(work.ordered.chat.members)]
            for member, start, end in zip(*(column.tolist() for column in online.presence), strict=True):
                periods[member].append((start, end))
            for retention in SWEPT:
                for measure, counts in counted(work, periods, retention).items():
                    margin = 0 if measure in (HELD_EVENT_S, HELD_BYTE_S) else online.number
                    assert told[work.chat, margin, mode_of(retention), measure] == counts
            for measure, counts in counted_there(work, periods).items():
                assert told[work.chat, online.number, EVERY_MODE, measure] == counts
            looked.add(online.number)
    assert looked == {0, 1, 2, 3, 4, 5}


def test_its_ends_are_those_of_the_study_of_relays() -> None:
    """Nothing held is P2P; nothing forgotten is relays, and by its pairs also another way of counting."""
    messages = drawn_messages(32, chats=8)
    told = plainly(messages)
    for work in works(messages):
        if work.ordered.chat.members < 2:
            continue
        for number, margin, presence in BOTH.of(work, profile(work.ordered)):
            found = outcomes(work.ordered, presence, margin)

            def at(mode: str, measure: str, chat: str = work.chat, number: int = number) -> dict[int, int]:
                return told[chat, number, mode, measure]

            pairs = found.totals[RELAYS, "pairs_at_once"] + found.totals[RELAYS, "pairs_after_waiting"]
            assert at("unlimited", PAIRS_WITHIN) == at(EVERY_MODE, PAIRS_EVER) == {0: pairs}
            assert at("unlimited", OWED_WITHIN) == at(EVERY_MODE, OWED_EVER)
            assert (
                at("0ms", PAIRS_WITHIN)
                == at("0ms", OWED_WITHIN)
                == {0: found.totals[RELAYS, "pairs_at_once"]}
            )
            assert at("0ms", FIRST_DELIVERY) == found.histograms[P2P, FIRST_DELIVERY]
            assert at("unlimited", FIRST_DELIVERY) == found.histograms[RELAYS, FIRST_DELIVERY]
            for measure in (HELD_EVENT_S, HELD_BYTE_S):
                assert told[work.chat, 0, "unlimited", measure] == {0: found.totals[RELAYS, measure]}
            for measure in (EVENTS, PAIRS):
                assert told[work.chat, 0, EVERY_MODE, measure] == {0: found.totals[EVERY_MODE, measure]}


def test_spark_gives_what_chats_give_alone(spark: SparkSession) -> None:
    messages = drawn_messages(33)
    told = through_spark(spark, messages)
    assert told == plainly(messages)
    assert {mode for _, _, mode, _ in told} == {*map(mode_of, SWEPT), EVERY_MODE, "profile"}
    assert through_spark(spark, messages, large=1) == told


def test_sums_of_a_chat() -> None:
    messages = [
        Message("c", 1_000 * second, user, 5, "text", "s")
        for second, user in ((0, "a"), (10, "b"), (20, "c"))
    ]
    told = plainly(messages)
    sums = {measure: told["c", 0, EVERY_MODE, measure][0] for measure in (CHATS, MEMBERS, MEMBER_S)}
    assert sums == {CHATS: 1, MEMBERS: 3, MEMBER_S: 60}
    # With a margin of a second everybody has left when the next one returns to speak: 10 s and 20 s later.
    assert [told["c", 1, mode_of(retention), PAIRS_WITHIN][0] for retention in SWEPT] == [0, 0, 3, 3, 3]
    assert [told["c", 0, mode_of(retention), HELD_EVENT_S][0] for retention in SWEPT] == [0, 1, 30, 30, 30]
