"""Plots are drawn of what is there."""

from __future__ import annotations

from msgspec.structs import replace

from linnet.lab.studies.groups import drawings
from linnet.lab.studies.groups.metrics import Outcomes
from linnet.lab.studies.groups.view import View


def test_ours_and_published_are_drawn(view: View) -> None:
    for plot in (drawings.traffic(view), *drawings.all_times(view)):
        assert plot.svg.startswith("<svg")
        assert "update, published" in plot.svg
        assert plot.caption
    assert [plot.title for plot in drawings.scaling(view)] == [
        "Growth of the sender's work", "Growth of a recipient's work",
    ]  # fmt: skip


def test_without_larger_groups_no_growth_is_drawn(view: View) -> None:
    times = {key: runs for key, runs in view.outcomes.times.items() if key[0] != "scaled-update"}
    none = replace(view, outcomes=Outcomes(view.outcomes.counts, times))
    assert list(drawings.scaling(none)) == []
