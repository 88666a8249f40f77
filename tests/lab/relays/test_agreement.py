"""What is compared, what is left out, and how a difference is shown."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from linnet.lab.relays.agreement import (
    Agreement,
    Case,
    Timeline,
    Verdict,
    agreements,
    compare,
    model_timeline,
    timeline,
    verdict,
)
from linnet.lab.relays.chat_arrays import chat_arrays, index_chat
from linnet.lab.relays.presence import periods_around
from linnet.lab.relays.receptions import Reception
from linnet.lab.stages import schema_of
from linnet.lab.tables import AGREEMENTS, PROTOCOL_RUNS, WINDOWS

WITH, WITHOUT = Case("club", 2, 4000, "relays"), Case("club", 2, 4000, "p2p")
MODEL = [Reception(0, 1, 10), Reception(0, 2, 30), Reception(1, 2, 40)]


def held_against(model: list[Reception], protocol: list[Reception], case: Case) -> Agreement:
    return compare(timeline(2, model), timeline(2, protocol), case)


def test_the_first_delivery_is_the_earliest_reception() -> None:
    received = [Reception(1, 0, 30), Reception(1, 2, 20), Reception(1, 3, 25)]
    assert timeline(3, received) == Timeline([-1, 20, -1], received)


@pytest.mark.parametrize("case", [WITH, WITHOUT])
def test_what_is_the_same_agrees(case: Case) -> None:
    assert held_against(MODEL, MODEL[::-1], case) == Agreement(2, 3, 0, 0, None)


@pytest.mark.parametrize("case", [WITH, WITHOUT])
def test_what_comes_later_or_never_differs(case: Case) -> None:
    later = held_against(MODEL, [MODEL[0], Reception(0, 2, 31), MODEL[2]], case)
    words = "event 0 reaches member 2 at 30 ms by the model, at 31 ms by the protocol"
    assert later == Agreement(2, 3, 0, 1, f"chat club, margin 2 (4000 ms), {case.mode}: {words}")
    never = held_against(MODEL, MODEL[:2], case)
    words = "event 1 first reaches anybody at 40 ms by the model, never by the protocol"
    assert never == Agreement(2, 3, 0, 2, f"{case}: {words}")


def test_with_relays_what_comes_too_soon_or_from_nowhere_differs() -> None:
    soon = held_against(MODEL, [MODEL[0], Reception(0, 2, 29), MODEL[2]], WITH)
    assert soon == Agreement(
        2, 3, 0, 1, f"{WITH}: event 0 reaches member 2 at 30 ms by the model, at 29 ms by the protocol"
    )
    extra = held_against(MODEL, [*MODEL, Reception(1, 0, 90)], WITH)
    assert extra == Agreement(
        2, 4, 0, 1, f"{WITH}: event 1 reaches member 0 never by the model, at 90 ms by the protocol"
    )


def test_without_relays_what_others_bring_is_counted_apart() -> None:
    brought = [MODEL[0], Reception(0, 2, 29), MODEL[2], Reception(1, 0, 90)]
    assert held_against(MODEL, brought, WITHOUT) == Agreement(2, 2, 2, 0, None)


def test_nobody_can_bring_the_first_sooner_than_the_sender() -> None:
    soon = held_against(MODEL, [Reception(0, 1, 9), *MODEL[1:]], WITHOUT)
    assert (soon.differences, soon.backfilled) == (1, 1)
    assert (
        soon.first
        == f"{WITHOUT}: event 0 first reaches anybody at 10 ms by the model, at 9 ms by the protocol"
    )


def test_the_model_pushes_without_relays_and_relays_with_them() -> None:
    chat = chat_arrays([10, 300, 500], ["a", "b", "a"], [1, 1, 1])
    presence = periods_around(index_chat(chat), 120)
    pushed, relayed = (model_timeline(chat, presence, mode) for mode in ("p2p", "relays"))
    assert pushed == Timeline([370, 370, -1], [Reception(0, 1, 370), Reception(1, 0, 370)])
    assert relayed == Timeline([170, 370, -1], [Reception(0, 1, 170), Reception(1, 0, 370)])


def frames(
    spark: SparkSession, rows: list[tuple[str, str, list[tuple[int, int, int]]]]
) -> tuple[DataFrame, DataFrame]:
    """Windows of one little chat, each with what a protocol made of it."""
    windows: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []
    for chat, mode, received in rows:
        key = {"chat": chat, "margin": 1, "mode": mode}
        event, receiver, time = (list(column) for column in zip(*received, strict=True))
        said = {"ts": [0, 290, 490], "user": [0, 1, 0], "chars": [1, 1, 1], "members": 2, "relays": 1}
        stays = {"member": [0, 0, 1], "start_ms": [0, 340, 140], "end_ms": [150, 640, 440]}
        windows.append({**key, "margin_ms": 150, "stratum": "dyads", **said, **stays})
        runs.append(
            {**key, "event": event, "receiver": receiver, "received_ms": time}
            | {"held": 0, "instants": 9, "messages": 40}
        )
    return spark.createDataFrame(windows, schema_of(WINDOWS)), spark.createDataFrame(
        runs, schema_of(PROTOCOL_RUNS)
    )


PUSHED = [(0, 1, 140), (1, 0, 340)]


def test_all_runs_are_looked_at_and_judged_together(spark: SparkSession) -> None:
    rows = [("b", "relays", PUSHED), ("a", "p2p", PUSHED), ("c", "p2p", [(0, 1, 140), (1, 0, 341)])]
    windows, runs = frames(spark, rows)
    table = agreements(windows, runs)
    assert table.schema.fieldNames() == schema_of(AGREEMENTS).fieldNames()
    found = {row["chat"]: row for row in table.collect()}
    assert [found[chat]["differences"] for chat in "abc"] == [0, 0, 2]
    assert [found[chat]["unforeseen"] for chat in "abc"] == [0, 0, 1]
    first = "chat c, margin 1 (150 ms), p2p: event 1 first reaches anybody at 340 ms by the model"
    assert verdict(table) == Verdict(3, 3, 9, 6, 0, 1, 0, 2, f"{first}, at 341 ms by the protocol")


def test_a_verdict_on_nothing_is_no_agreement_of_anything(spark: SparkSession) -> None:
    empty = spark.createDataFrame([], schema_of(AGREEMENTS))
    assert verdict(empty) == Verdict(0, 0, 0, 0, 0, 0, 0, 0, None)


def test_a_window_that_was_not_run_is_no_agreement(spark: SparkSession) -> None:
    windows, runs = frames(spark, [("a", "p2p", PUSHED), ("b", "p2p", PUSHED)])
    with pytest.raises(PythonException, match=r"chat b, margin 1 .* was not run through the protocol"):
        agreements(windows, runs.where("chat = 'a'")).collect()
