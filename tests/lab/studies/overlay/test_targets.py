"""What must hold, and what happens when it does not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linnet.lab.studies.overlay.metrics import Outcomes
from linnet.lab.studies.overlay.targets import checks
from linnet.lab.studies.overlay.view import View


def _ids(view: View, ok: bool) -> set[str]:
    return {check.id for check in checks(view) if check.ok is ok}


def test_a_study_that_works(view: View) -> None:
    assert {"causal", "rings.whole", "living.drawn.calm", "mending.failure.0.1", "degrees"} <= _ids(
        view, True
    )
    assert "hops" not in _ids(view, True) | _ids(view, False)  # no ring of ten thousand was run


def test_a_study_in_which_something_is_lost_or_too_early(view: View) -> None:
    runs = {key: [dict(run) for run in each] for key, each in view.outcomes.runs.items()}
    runs["living", "drawn|calm"][0]["hit_ratio", 0] = 999_999
    runs["living", "drawn|liars"][0]["hit_ratio_after_repair", 0] = 999_000
    runs["mending", "partition|0"][0]["causal_violations", 0] = 1
    runs["rings", "100|3|0"][0]["hit_ratio", 0] = 990_000
    runs["rings", "10000|3|0"] = [{("hops", 0): 900, ("reached", 0): 100, ("hit_ratio", 0): 1_000_000}]
    broken = replace(view, outcomes=Outcomes(runs))
    assert {"living.drawn.calm", "living.drawn.liars", "causal", "rings.whole", "hops"} <= _ids(broken, False)


@pytest.mark.parametrize("count", ["causal_violations", "repeated", "noise"])
def test_one_event_too_early_twice_or_with_a_stranger_fails_a_study(view: View, count: str) -> None:
    runs = {key: [dict(run) for run in each] for key, each in view.outcomes.runs.items()}
    runs["living", "drawn|liars"][0][count, 0] = 1
    broken = replace(view, outcomes=Outcomes(runs))
    assert _ids(broken, False) - _ids(view, False) == {"causal"}
