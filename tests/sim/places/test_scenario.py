"""Places in simulation: all who may see it get it, nobody else does, states are equal; runs replay."""

from __future__ import annotations

import os

import pytest
from msgspec.structs import replace

from linnet.places.deed import Policy
from linnet.sim.places.scenario import PlacesScenario, run_places

SOAK = bool(os.environ.get("LINNET_SOAK"))
HARD = PlacesScenario(guests=24, messages=15, loss=0.05, churn=0.5, fanout=3, quiet=200.0)


@pytest.mark.parametrize("seed", range(1, 101 if SOAK else 5))
def test_with_loss_and_churn_everything_arrives_and_nothing_leaks(seed: int) -> None:
    report = run_places(replace(HARD, seed=seed))
    assert report.undelivered == ()
    assert (report.delivered_share, report.leaked, report.distinct_state_hashes) == (1.0, 0, 1)
    assert (report.late, report.ejected, report.crashed) == (4, 4, 4)
    assert report.pairs > 100


@pytest.mark.parametrize("policy", [Policy.PRIVATE, Policy.CLOSED])
@pytest.mark.parametrize("seed", range(1, 101 if SOAK else 3))
def test_in_encrypted_places_too_and_nobody_has_a_key_who_may_not(policy: Policy, seed: int) -> None:
    report = run_places(replace(HARD, policy=policy, seed=seed))
    assert report.undelivered == ()
    assert (report.delivered_share, report.leaked, report.distinct_state_hashes) == (1.0, 0, 1)
    assert (report.late, report.ejected, report.crashed) == (4, 4, 4)


def test_the_hosts_upload_stays_flat_as_guests_grow() -> None:
    few = run_places(PlacesScenario(guests=10, messages=10, fanout=4))
    many = run_places(PlacesScenario(guests=60, messages=10, fanout=4))
    assert few.ok
    assert many.ok
    assert many.origin_sends_per_message <= 4.0
    assert many.mean_hops > few.mean_hops


@pytest.mark.parametrize("policy", [Policy.ANONYMOUS, Policy.PUBLIC])
def test_places_without_a_doorkeeper(policy: Policy) -> None:
    report = run_places(PlacesScenario(guests=8, messages=5, policy=policy))
    assert report.ok
    assert report.pairs > 5 * 8


def test_equal_seeds_give_equal_traces() -> None:
    one, other = run_places(HARD), run_places(HARD)
    assert one.trace_sha256 == other.trace_sha256
    assert run_places(replace(HARD, seed=2)).trace_sha256 != one.trace_sha256


def test_a_lost_page_of_membership_is_noticed() -> None:
    report = run_places(PlacesScenario(guests=100, messages=10, loss=0.05, churn=0.2))
    assert report.undelivered == ()
    assert report.ok
