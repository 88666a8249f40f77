"""Rows of repeats as means, ratios and curves."""

from __future__ import annotations

import pytest

from linnet.lab.studies.overlay.metrics import gather

ROWS = [
    ("sampling", "ours|hub|0.1", 0, "lying", 10, 4),
    ("sampling", "ours|hub|0.1", 0, "places", 10, 10),
    ("sampling", "ours|hub|0.1", 1, "lying", 10, 2),
    ("sampling", "ours|hub|0.1", 1, "places", 10, 20),
    ("living", "drawn|calm", 0, "hit_ratio", 0, 1_000_000),
    ("living", "drawn|calm", 1, "hit_ratio", 0, 500_000),
    ("living", "drawn|calm", 1, "noise", 0, 3),
]


def test_repeats_are_gathered() -> None:
    found = gather(ROWS)
    assert found.settings("living") == ["drawn|calm"]
    assert found.has("living", "drawn|calm")
    assert not found.has("living", "other")
    assert found.ratio("living", "drawn|calm", "hit_ratio") == 0.75
    spread = found.spread("living", "drawn|calm", "hit_ratio", 1e6)
    assert spread is not None
    assert (spread.lowest, spread.highest, spread.count) == (0.5, 1.0, 2)
    assert found.mean("living", "drawn|calm", "nothing") is None
    assert found.curve("ours|hub|0.1", "lying", "places") == {10: pytest.approx(0.2)}
    assert found.total("noise") == 3
