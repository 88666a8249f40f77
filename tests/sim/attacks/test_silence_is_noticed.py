"""Silent neighbours gain nothing: who they cut off notices it, and gets what it lacks from others."""

from __future__ import annotations

import pytest
from tests.conftest import SOAK

from linnet.sim.attacks.conduct import Conduct
from linnet.sim.attacks.silent_streams import Order, StreamAttack, run_stream_attack

ATTACKS = [
    (Conduct.SILENT, Order.BEFORE),
    (Conduct.MUTE, Order.AFTER),
    (Conduct.SLEEPER, Order.BEFORE),
    *((conduct, Order.AMONG) for conduct in Conduct if conduct.is_hostile),
    (Conduct.SILENT, Order.AFTER),
    (Conduct.MUTE, Order.BEFORE),
    (Conduct.SLEEPER, Order.AFTER),
    (Conduct.SELECTIVE, Order.BEFORE),
]
HONEST = [conduct for conduct in Conduct if not conduct.is_hostile]


@pytest.mark.parametrize(("conduct", "order"), ATTACKS if SOAK else ATTACKS[:3])
@pytest.mark.parametrize("seed", range(1, 41 if SOAK else 2))
def test_with_half_of_all_nodes_silent_everybody_has_everything_within_30_seconds(
    conduct: Conduct, order: Order, seed: int
) -> None:
    figures = run_stream_attack(StreamAttack(conduct=conduct, order=order, seed=seed)).figures
    assert figures.delivered == figures.honest_due == 60 * 23
    assert figures.worst_seconds <= 30.0


@pytest.mark.parametrize("share", [2 / 3, 9 / 10])
@pytest.mark.parametrize(("conduct", "order"), ATTACKS if SOAK else ATTACKS[:1])
@pytest.mark.parametrize("seed", range(1, 21 if SOAK else 2))
def test_with_more_of_them_silent_whoever_lacks_something_for_a_minute_is_told(
    share: float, conduct: Conduct, order: Order, seed: int
) -> None:
    honest = 24 if share < 0.8 else 12
    report = run_stream_attack(
        StreamAttack(conduct=conduct, share=share, order=order, seed=seed, honest=honest, patience=60.0)
    )
    assert report.cut_off_told == report.cut_off
    assert (report.slowest_told_seconds or 0.0) <= 60.0


def test_silent_neighbours_are_replaced_and_who_is_replaced_is_told_in_the_trace() -> None:
    report = run_stream_attack(StreamAttack(seed=1, messages=300))
    assert report.hostile_blamed >= 8
    assert report.honest_blamed <= 1, "some get nothing from elsewhere either"


@pytest.mark.parametrize("conduct", HONEST)
@pytest.mark.parametrize("seed", range(1, 41 if SOAK else 2))
def test_no_honest_node_in_trouble_is_replaced(conduct: Conduct, seed: int) -> None:
    scenario = StreamAttack(conduct=conduct, share=0.2, seed=seed, messages=400 if SOAK else 60)
    report = run_stream_attack(scenario)
    assert report.honest_blamed == 0
