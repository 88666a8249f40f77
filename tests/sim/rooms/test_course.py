"""Whole rooms in simulation: people who come and go, and an oracle that judges what they got."""

from __future__ import annotations

import os

import pytest
from msgspec.structs import replace

from linnet.sim.rooms.scenario import RoomScenario, RoomsReport, run_rooms
from linnet.trace.columns import ColumnTrace

SOAK = bool(os.environ.get("LINNET_SOAK"))
SEEDS = range(1, 51) if SOAK else (1, 2, 3)


def wrong(report: RoomsReport) -> dict[str, object]:
    """What is not as it must be, to be read when a seed fails."""
    must = {
        "delivered_share": 1.0,
        "unauthorised_delivered": 0,
        "distinct_states": 1,
        "states_wrong": 0,
        "causal_violations": 0,
        "duplicate_deliveries": 0,
        "ledger_wrong": 0,
    }
    found = {name: getattr(report, name) for name, value in must.items() if getattr(report, name) != value}
    return found and {**found, "first": (*report.undelivered, *report.ledger_wrong_lines)}


@pytest.mark.parametrize("seed", SEEDS)
def test_everyone_gets_what_they_should_and_nothing_else(seed: int) -> None:
    report = run_rooms(RoomScenario(peers=8, relays=2, messages=40, bans=2, demotions=1, seed=seed))
    assert wrong(report) == {}
    assert report.ok
    assert report.pairs > 100
    assert report.return_pairs > 20
    assert 0.2 < report.offline_share < 0.8
    assert report.ledger_lines > 50


@pytest.mark.parametrize("seed", SEEDS)
def test_members_do_without_relays(seed: int) -> None:
    report = run_rooms(RoomScenario(peers=6, relays=0, messages=30, bans=1, demotions=1, seed=seed))
    assert wrong(report) == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_what_links_lose_is_made_good(seed: int) -> None:
    report = run_rooms(RoomScenario(peers=6, relays=2, messages=30, bans=1, seed=seed, loss=0.03))
    assert wrong(report) == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_partition_heals(seed: int) -> None:
    scenario = RoomScenario(peers=8, relays=2, messages=40, offline=0.2, bans=2, seed=seed, partition=15.0)
    assert wrong(run_rooms(scenario)) == {}


@pytest.mark.parametrize(
    "scenario",
    [
        # A ban that was known before what it depends on, through another control event that names it.
        RoomScenario(peers=8, relays=0, messages=60, loss=0.05, seed=15),
        RoomScenario(
            peers=8, relays=1, messages=60, offline=0.6, bans=3, demotions=3, gap=0.2, cycle=5, seed=17
        ),
    ],
    ids=lambda scenario: f"seed {scenario.seed}",
)
def test_what_went_wrong_once(scenario: RoomScenario) -> None:
    assert wrong(run_rooms(scenario)) == {}


@pytest.mark.skipif(not SOAK, reason="one large room takes a minute")
def test_a_large_room() -> None:
    assert wrong(run_rooms(RoomScenario(peers=40, relays=4, messages=400, bans=6, demotions=4))) == {}


def test_with_relays_the_first_return_brings_what_was_missed() -> None:
    scenario = RoomScenario(
        peers=5, relays=2, messages=60, gap=3.0, cycle=40.0, bans=0, demotions=0, offline=0.85
    )
    with_relays, without = run_rooms(scenario), run_rooms(replace(scenario, relays=0))
    assert with_relays.first_return_share > without.first_return_share
    assert with_relays.first_return_share > 0.9


def test_nothing_is_declined_where_nobody_is_put_out_or_away() -> None:
    report = run_rooms(RoomScenario(peers=4, relays=1, messages=20, offline=0.0, bans=0, demotions=0))
    assert wrong(report) == {}
    assert (report.declined, report.endangered, report.soft_failed) == (0, 0, 0)
    assert (report.banned, report.demoted, report.offline_share) == (0, 0, 0.0)
    assert report.messages == 20
    assert report.ledger_pending == 0


def test_equal_seeds_are_equal() -> None:
    scenario = RoomScenario(peers=4, relays=1, messages=15)
    trace = ColumnTrace()
    first = run_rooms(scenario, trace)
    assert first == run_rooms(scenario)
    assert first.trace_sha256 == trace.sha256()


def test_progress_grows_to_the_end() -> None:
    told: list[float] = []
    run_rooms(RoomScenario(peers=3, relays=1, messages=5), progress=lambda done, what: told.append(done))
    assert told == sorted(told)
    assert told[0] == 0.0


GOOD = RoomsReport(
    peers=2,
    relays=1,
    events=9,
    messages=3,
    declined=0,
    banned=0,
    demoted=0,
    offline_share=0.5,
    pairs=3,
    delivered_share=1.0,
    undelivered=(),
    first_return_share=1.0,
    return_pairs=2,
    unauthorised_delivered=0,
    endangered=1,
    soft_failed=1,
    distinct_states=1,
    states_wrong=0,
    causal_violations=0,
    duplicate_deliveries=0,
    ledger_lines=3,
    ledger_wrong=0,
    ledger_wrong_lines=(),
    ledger_pending=1,
    virtual_seconds=100.0,
    trace_sha256="00",
    wall_seconds=1.0,
)


def test_real_time_does_not_matter() -> None:
    again = replace(GOOD, wall_seconds=7.0)
    assert again == GOOD
    assert replace(GOOD, messages=4) != GOOD
    assert GOOD != "report"


@pytest.mark.parametrize(
    "wrong",
    [
        {"delivered_share": 0.99},
        {"unauthorised_delivered": 1},
        {"distinct_states": 2},
        {"states_wrong": 1},
        {"causal_violations": 1},
        {"duplicate_deliveries": 1},
        {"ledger_wrong": 1},
    ],
)
def test_one_wrong_number_is_enough(wrong: dict[str, float]) -> None:
    assert GOOD.ok
    assert not replace(GOOD, **wrong).ok
