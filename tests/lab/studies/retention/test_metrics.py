"""Classes and sums, against plain Python; what is read from sums."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.lab.studies.relays.small_chats import drawn_messages, frame_of
from tests.lab.studies.retention.small_pools import pool_of

from linnet.lab.relays.profile import Filters
from linnet.lab.studies.relays.metrics import profiles, read_pool
from linnet.lab.studies.relays.run import Attending
from linnet.lab.studies.relays.workload import sent
from linnet.lab.studies.retention.metrics import (
    ALL,
    CLASSES,
    classed,
    classes_in,
    pooled,
    presences_in,
    trade_of,
)
from linnet.lab.studies.retention.run import Presences, retentions_of
from linnet.lab.studies.retention.sweep import HOUR, OUR_DEFAULT, UNLIMITED, sweep
from linnet.lab.tables import PROFILES

SWEPT = sweep([HOUR])
LIVELY = 3_000


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession) -> DataFrame:
    return retentions_of(
        sent(frame_of(spark, drawn_messages(41, chats=20))), Presences((Attending(),)), SWEPT
    ).cache()


def profile_row(chat: str, members: int, median: int, longest: int = 5_000) -> tuple[object, ...]:
    return (chat, True, members, 9, 9, 9, median, longest, 9, 6)


def test_each_chat_is_in_its_class(spark: SparkSession) -> None:
    rows = [
        profile_row("alone", 1, 5),
        profile_row("at once", 2, 5, longest=1_000),
        profile_row("two", 2, LIVELY),
        profile_row("two, slow", 2, LIVELY + 1),
        profile_row("three", 3, 0),
        profile_row("nine", 9, 10**9),
        profile_row("ten", 10, 0),
        profile_row("thirty", 30, LIVELY + 1),
        profile_row("more", 31, 0),
        profile_row("most", 252, LIVELY + 1),
    ]
    found = classed(spark.createDataFrame(rows, PROFILES.columns), LIVELY).collect()
    classes = {row.chat: row.population for row in found if row.population != ALL}
    assert classes == {
        "two": "dyads-lively",
        "two, slow": "dyads-slow",
        "three": "small-lively",
        "nine": "small-slow",
        "ten": "medium-lively",
        "thirty": "medium-slow",
        "more": "large-lively",
        "most": "large-slow",
    }
    assert {row.chat for row in found if row.population == ALL} == set(classes)
    assert len(found) == 2 * len(classes)
    assert set(classes.values()) | {ALL} == set(CLASSES)


def test_classes_are_summed_bin_by_bin(outcomes: DataFrame) -> None:
    profiled = profiles(outcomes, Filters())
    member_of: dict[str, list[str]] = {}
    for row in profiled.collect():
        if row.members >= 2 and row.max_iat_ms > 1000:
            size = "dyads" if row.members == 2 else "small"
            pace = "lively" if row.median_iat_ms <= LIVELY else "slow"
            member_of[row.chat] = [ALL, f"{size}-{pace}"]
    sums: dict[tuple[str, int, str, str], Counter[int]] = {}
    for row in outcomes.collect():
        for population in member_of.get(row.chat, []) if row.mode != "profile" else []:
            cell = sums.setdefault((population, row.margin, row.mode, row.measure), Counter())
            cell.update(dict(zip(row.bins, row.counts, strict=True)))
    pool = read_pool(pooled(outcomes, profiled, LIVELY))
    assert pool.cells == {key: dict(bins) for key, bins in sums.items()}
    assert classes_in(pool) == [
        name for name in CLASSES if any(name in named for named in member_of.values())
    ]
    assert len(classes_in(pool)) >= 4
    assert presences_in(pool) == [1, 2, 3, 4, 5]


def test_shares_and_means_are_of_the_sums() -> None:
    pool = pool_of(within=(10, 40, 60, 80), undelivered=(9, 5, 4, 2), event_s=(0, 36_000, 72_000, 144_000))
    trade = trade_of(pool, ALL, 3, SWEPT)
    assert [kept.retention for kept in trade.kept] == [0, HOUR, OUR_DEFAULT, UNLIMITED]
    hour = trade.at(HOUR)
    assert (hour.served, hour.served_of_all, hour.undelivered_share) == (0.4, 0.35, 0.1)
    assert (trade.of_unlimited(hour), trade.held(hour)) == (0.5, 0.25)
    # 10 event-hours for 50 events, and for 4 members who are there for 2 days each.
    assert (hour.hours_per_event, hour.hours_per_member_day) == (0.2, 1.25)
    assert hour.megabyte_hours == pytest.approx(36_000 * 250 / 3.6e9)
    assert (trade.nothing.owed_within, trade.ours.within, trade.unlimited.within) == (10, 90, 110)


def test_nothing_is_a_share_of_nothing() -> None:
    trade = trade_of(pool_of(), "dyads-slow", 3, SWEPT)
    assert (trade.unlimited.served, trade.unlimited.hours_per_event, trade.held(trade.ours)) == (0, 0, 0)
    assert trade.of_unlimited(trade.ours) == 1, "unlimited serves nobody either"
