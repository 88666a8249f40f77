"""Plots: one of duplicates for each variant that has published ones, one of latencies for each network."""

from __future__ import annotations

from msgspec.structs import replace

from linnet.lab.studies.content import drawings
from linnet.lab.studies.content.view import View


def test_duplicates_are_drawn_where_some_are_published(view: View) -> None:
    titles = [plot.title for plot in drawings.duplicates(view)]
    assert titles == [
        "Further receptions: base-unreliable",
        "Further receptions: redirect-unreliable",
        "Further receptions: base-reliable",
        "Further receptions: redirect-reliable",
    ]


def test_latencies_are_drawn_for_each_network(view: View) -> None:
    found = list(drawings.latencies(view))
    assert [("60 nodes" in plot.title, "250 nodes" in plot.title) for plot in found] == [
        (True, False),
        (False, True),
    ]
    assert all("<svg" in plot.svg for plot in found)


def test_stages_are_drawn_if_they_were_run(view: View) -> None:
    found = list(drawings.stages(view))
    assert [plot.title.partition(",")[0] for plot in found] == [
        "Mean latency",
        "Until a subscription stands",
        "Processor time of a node",
        "Memory of a node",
    ]
    without = replace(view, counts={key: counts for key, counts in view.counts.items() if not key[4]})
    assert list(drawings.stages(without)) == []
