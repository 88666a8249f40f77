"""Plots are drawings with words."""

from __future__ import annotations

from linnet.lab.studies.overlay import drawings
from linnet.lab.studies.overlay.view import View


def test_all_are_drawn(view: View) -> None:
    plots = [
        *drawings.attacks(view),
        drawings.filters(view, "drawn"),
        drawings.hops(view),
        *drawings.degrees(view),
    ]
    assert len(plots) == 5
    for plot in plots:
        assert plot.svg.startswith("<svg")
        assert plot.caption
