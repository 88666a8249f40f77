"""Relays that lie: what each lie gains alone, and that a second path takes it all back."""

from __future__ import annotations

from functools import cache

import pytest

from linnet.core.errors import ConfigError
from linnet.sim.attacks.lying_relays import (
    TOGETHER,
    TURN,
    RelayAttackPlan,
    RelayAttackReport,
    RelayLie,
    run_relay_attack,
)

PEERS, MESSAGES = 6, 18
DUE = MESSAGES * (PEERS - 1)
MEETING = TURN * (MESSAGES + PEERS)
"""Seconds from the first member's turn until all are online together."""


@cache
def attacked(lie: RelayLie, relays: int, seed: int = 1) -> RelayAttackReport:
    return run_relay_attack(RelayAttackPlan(lie, PEERS, relays, messages=MESSAGES, seed=seed))


@pytest.mark.parametrize("lie", RelayLie)
@pytest.mark.parametrize("seed", [1, 2])
def test_with_an_honest_relay_beside_it_a_lie_gains_nothing(lie: RelayLie, seed: int) -> None:
    report = attacked(lie, 2, seed)
    assert (report.figures.honest_due, report.figures.share) == (DUE, 0.5)
    assert (report.alone, report.alone_without, report.withheld) == (DUE, DUE, 0)
    assert report.figures.delivered == DUE
    assert (report.right_states, report.falsely_caught) == (PEERS, 0)
    assert report.ok


@pytest.mark.parametrize("lie", [RelayLie.WITHHOLD, RelayLie.SPLIT, RelayLie.REPLAY])
def test_a_room_whose_only_relay_lies_gets_the_rest_when_members_meet(lie: RelayLie) -> None:
    report = attacked(lie, 1)
    lost = {
        RelayLie.WITHHOLD: 2
        * 3
        * (PEERS - 1),  # Two of the six members are hidden, with three messages each.
        RelayLie.SPLIT: MESSAGES * 3,  # Each of the six hears the three of the other half not at all.
        RelayLie.REPLAY: DUE,
    }
    assert report.alone_without == DUE
    assert report.withheld == lost[lie]
    assert report.figures.delivered == DUE
    assert report.right_states == PEERS


@pytest.mark.parametrize("relays", [1, 2])
@pytest.mark.parametrize("lie", [RelayLie.WITHHOLD, RelayLie.SPLIT])
def test_who_hides_what_it_signed_for_is_proved_to_all_once_members_meet(lie: RelayLie, relays: int) -> None:
    report = attacked(lie, relays)
    told = report.figures.told_after_seconds
    assert told is not None
    assert MEETING - 2 * TURN < told < MEETING + TOGETHER / 5
    assert report.caught_at == PEERS


def test_who_shows_an_old_state_is_caught_by_who_has_a_later_statement() -> None:
    report = attacked(RelayLie.REPLAY, 2)
    told = report.figures.told_after_seconds
    assert told is not None
    assert (
        told < MEETING
    )  # Each finds it out alone, at its next turn after it was told that an event is kept.
    assert report.caught_at == PEERS


def test_another_order_is_no_fault() -> None:
    report = attacked(RelayLie.REORDER, 1)
    assert (report.alone, report.figures.told_after_seconds, report.caught_at) == (DUE, None, 0)


def test_equal_plans_give_equal_reports() -> None:
    plan = RelayAttackPlan(RelayLie.SPLIT, PEERS, 1, messages=MESSAGES)
    assert run_relay_attack(plan) == attacked(RelayLie.SPLIT, 1)


def test_more_liars_than_relays_are_refused() -> None:
    with pytest.raises(ConfigError, match="2 of 1 relays"):
        run_relay_attack(RelayAttackPlan(RelayLie.SPLIT, relays=1, liars=2))
