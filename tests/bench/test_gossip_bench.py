"""The figures of overlays without trackers can be taken, and mean what they say."""

from __future__ import annotations

from pathlib import Path

from bench.results import Plan

from bench import gossip


def test_rates_are_taken_of_real_parts(tmp_path: Path) -> None:
    count, offer = gossip.sampler_rates(0.01)
    assert min(count, offer, gossip.likeness_rate(0.01), gossip.hash_rate(0.01)) > 0
    assert Plan(1, 0.01, True, tmp_path).quick


def test_idling_costs_more_with_more_topics_and_less_than_in_proportion() -> None:
    none, four, sixteen = (gossip.idle_bytes(topics, nodes=8, hour=600.0) for topics in (0, 4, 16))
    assert 0 < none < four < sixteen < 4 * four
