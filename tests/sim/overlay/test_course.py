"""The simulation of the overlay without trackers, small: what must hold in every run, and its replay."""

from __future__ import annotations

import pytest

from linnet.sim.overlay.course import run_overlay
from linnet.sim.overlay.scenario import OverlayScenario

CALM = OverlayScenario(
    nodes=16, topics=4, subscriptions=2, liars=0.0, churn=0.0, rounds=10, warmup=20, repair=5, events=2
)
ROUGH = OverlayScenario(
    nodes=20, topics=3, subscriptions=2, liars=0.1, churn=0.1, rounds=25, warmup=20, repair=25, events=3
)


def test_without_liars_and_churn_everyone_gets_everything_at_once() -> None:
    seen: list[float] = []
    report = run_overlay(CALM, lambda done, what: seen.append(done))
    assert (report.hit_ratio, report.hit_ratio_after_repair, report.fetched) == (1.0, 1.0, 0.0)
    assert (report.connected_topics, report.rings_right) == (1.0, 1.0)
    assert (report.causal_violations, report.repeated, report.noise) == (0, 0, 0)
    assert report.events == 8
    assert 1.0 <= report.mean_hops <= report.max_hops
    assert 1.0 <= report.duplication <= CALM.config.fanout + 0.5
    assert (report.liar_view_share, report.liar_view_share_peak) == (0.0, 0.0)
    assert seen[-1] > 0.8


def test_with_both_everything_comes_in_the_end_and_again_the_same() -> None:
    report = run_overlay(ROUGH)
    assert report.hit_ratio_after_repair == 1.0
    assert report.hit_ratio > 0.8
    assert report.ok
    assert 0 < report.liar_view_share <= report.liar_view_share_peak < 0.5
    assert report == run_overlay(ROUGH)


def test_interests_may_be_given() -> None:
    interests = tuple((number % 4, 3 if number % 4 != 3 else 0) for number in range(16))
    report = run_overlay(CALM, interests=tuple(tuple(sorted(own)) for own in interests))
    assert report.subscriptions == 32
    assert report.hit_ratio == pytest.approx(1.0)
