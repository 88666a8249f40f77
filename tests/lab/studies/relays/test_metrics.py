"""Sums over chats, against plain Python."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.lab.studies.relays.small_chats import drawn_messages, frame_of

from linnet.lab.bins import NEVER
from linnet.lab.relays.outcomes import P2P, RELAYS, RETURN_RECEPTION
from linnet.lab.relays.profile import Filters, Profile
from linnet.lab.studies.relays.metrics import (
    ALL,
    FUNNEL,
    SELECTED,
    funnel,
    inversions,
    pooled,
    profiles,
    read_pool,
)
from linnet.lab.studies.relays.run import PROFILE, Attending, outcomes_of
from linnet.lab.studies.relays.workload import sent
from linnet.lab.tables import OUTCOMES

FILTERS = Filters(most_members=4, fewest_messages=8, longest_run_ms=4 * 60_000)

Outcome = dict[tuple[str, int, str, str], dict[int, int]]


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession) -> DataFrame:
    return outcomes_of(sent(frame_of(spark, drawn_messages(21, chats=25))), Attending()).cache()


@pytest.fixture(scope="module")
def told(outcomes: DataFrame) -> Outcome:
    return {
        (row.chat, row.margin, row.mode, row.measure): dict(zip(row.bins, row.counts, strict=True))
        for row in outcomes.collect()
    }


def steps(told: Outcome) -> dict[str, int]:
    """How many steps of the selection each chat passes, by reading them."""
    found = {}
    for chat in {chat for chat, *_ in told}:
        of = {
            measure: told[chat, 0, "profile", measure][0]
            for c, _, mode, measure in told
            if (c, mode) == (chat, "profile")
        }
        tests = [
            of["members"] >= 2 and of["longest_pause"] > 1000,
            of["seconds"] == 1,
            of["members"] <= 4,
            of["estimate"] <= 240_000,
            of["messages"] >= 8,
        ]
        found[chat] = 1 + (tests.index(False) if False in tests else len(tests))
    return found


def populations(told: Outcome) -> dict[str, list[str]]:
    return {
        chat: [ALL, SELECTED] if step == len(FUNNEL) else [ALL] if step > 1 else []
        for chat, step in steps(told).items()
    }


def test_each_chat_passes_so_many_steps(outcomes: DataFrame, told: Outcome) -> None:
    rows = profiles(outcomes, FILTERS).collect()
    assert {row.chat: row.step for row in rows} == steps(told)
    assert len(rows) == len(steps(told))
    assert set(steps(told).values()) >= {1, 2, 6}


@pytest.mark.parametrize(
    ("measure", "passes", "fails", "step"),
    [
        ("members", 2, 1, 1),
        ("longest_pause", 1001, 1000, 1),
        ("seconds", 1, 0, 2),
        ("members", 4, 5, 3),
        ("estimate", 240_000, 240_001, 4),
        ("messages", 8, 7, 5),
    ],
)
def test_the_last_value_that_passes_a_filter_and_the_first_that_fails(
    spark: SparkSession, measure: str, passes: int, fails: int, step: int
) -> None:
    usual = {**dict.fromkeys(Profile._fields, 1), "members": 3, "messages": 9, "longest_pause": 9999}
    rows = [
        (chat, 0, PROFILE, name, [0], [number])
        for chat, value in (("passes", passes), ("fails", fails))
        for name, number in (usual | {"seconds": 1, measure: value}).items()
    ]
    found = profiles(spark.createDataFrame(rows, OUTCOMES.columns), FILTERS).collect()
    assert {row.chat: row.step for row in found} == {"passes": len(FUNNEL), "fails": step}


def test_the_funnel_counts_what_is_left(outcomes: DataFrame, told: Outcome) -> None:
    left, messages = Counter[int](), Counter[int]()
    for chat, step in steps(told).items():
        for number in range(1, step + 1):
            left[number] += 1
            messages[number] += told[chat, 0, "profile", "messages"][0]
    rows = funnel(profiles(outcomes, FILTERS)).collect()
    assert {row.step: (row.chats, row.messages) for row in rows} == {n: (left[n], messages[n]) for n in left}


def test_populations_are_summed_bin_by_bin(outcomes: DataFrame, told: Outcome) -> None:
    sums: dict[tuple[str, int, str, str], Counter[int]] = {}
    for (chat, margin, mode, measure), bins in told.items():
        for population in populations(told)[chat]:
            if mode != "profile":
                sums.setdefault((population, margin, mode, measure), Counter()).update(bins)
    pool = read_pool(pooled(outcomes, profiles(outcomes, FILTERS)))
    assert pool.cells == {
        key: {b: n for b, n in bins.items() if n or b in bins} for key, bins in sums.items()
    }
    assert pool.populations() == [ALL, SELECTED]
    assert pool.margins() == [1, 2, 3, 4, 5]


def test_inverted_chats_have_more_empty_periods_with_relays(outcomes: DataFrame, told: Outcome) -> None:
    chats, inverted = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    for (chat, margin, mode, measure), bins in told.items():
        if (mode, measure) == (RELAYS, RETURN_RECEPTION):
            without = told[chat, margin, P2P, RETURN_RECEPTION].get(NEVER, 0)
            for population in populations(told)[chat]:
                chats[population, margin] += 1
                inverted[population, margin] += bins.get(NEVER, 0) > without
    rows = inversions(outcomes, profiles(outcomes, FILTERS)).collect()
    assert {(r.population, r.margin): (r.chats, r.inverted) for r in rows} == {
        key: (chats[key], inverted[key]) for key in chats
    }
