"""Figures have ids of their own, and the published ones beside them."""

from __future__ import annotations

import re
from collections import Counter

from linnet.lab.studies.overlay.figures import figures
from linnet.lab.studies.overlay.view import View


def test_ids_are_unique_and_stable(view: View) -> None:
    found = {figure.id: figure for figure in figures(view)}
    assert max(Counter(figure.id for figure in figures(view)).values()) == 1
    assert all(re.fullmatch(r"[a-z0-9_.]+", id) for id in found)
    assert {
        "hops.100.3",
        "sampling.ours.hub.0.1.end",
        "filters.drawn.k1.e3.attack",
        "living.drawn.liars_and_churn.hit_ratio",
        "degree.id.4",
        "mending.failure.0.1.repaired_rounds",
        "choosing.ring.hourly_bytes",
        "failed.100.3.0.3",
    } <= set(found)
    assert found["hops.100.3"].source == "Setty et al. 2012"
    assert found["degree.id.4"].measured == 6.0
