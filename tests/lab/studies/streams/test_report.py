"""The sections of the report."""

from __future__ import annotations

from msgspec.structs import replace

from linnet.lab.studies.streams.report import sections
from linnet.lab.studies.streams.view import View


def test_all_sections_and_figures_of_the_source_are_there(view: View) -> None:
    found = list(sections(view))
    assert [section.title for section in found] == [
        "Delay",
        "Predictability",
        "Relative delay penalty",
        "Growth",
        "Hops and the overlays",
        "Redundancy",
        "Graphs",
        "Randomness",
    ]
    plots = " ".join(plot.title for section in found for plot in section.plots)
    for number in ("5.1", "5.2", "5.4", "5.6", "5.7", "5.8", "5.9"):
        assert f"Figure {number}" in plots
    grids = " ".join(grid.title for section in found for grid in section.grids)
    for number in ("5.2", "5.3", "5.4"):
        assert f"Table {number}" in grids


def test_what_was_left_out_has_no_section(view: View) -> None:
    bare = replace(view, parameters=replace(view.parameters, degrees=()), randomness=None)
    titles = [section.title for section in sections(bare)]
    assert "Redundancy" not in titles
    assert "Randomness" not in titles
