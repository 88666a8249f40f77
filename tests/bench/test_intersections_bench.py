"""The measurements of private set intersection run, and what is compared follows from them."""

from __future__ import annotations

from pathlib import Path

from bench.results import Comparison, Measure, Plan
from bench.targets import compare

from bench import intersections
from linnet.overlay.gossip.private_set_intersection import RISTRETTO
from linnet.sim.signature_cache import IDEAL


def test_runs_and_their_ceiling_are_measured(tmp_path: Path) -> None:
    found = intersections.measure(Plan(1, 0.001, True, tmp_path))
    figures = {each.name: each.median for each in found}
    assert all(median is not None and median > 0 for median in figures.values())
    for topics in (16, 64, 256):
        assert {intersections.name_of(topics), intersections.ceiling_name(topics)} <= set(figures)
    bare = figures[intersections.MULTIPLY]
    assert bare is not None
    assert figures[intersections.ceiling_name(64)] == bare / 256


def test_a_run_finds_the_half_that_is_in_common() -> None:
    assert intersections.intersect(RISTRETTO, 16) == intersections.intersect(IDEAL, 16)
    assert intersections.intersect(IDEAL, 64)[0] == 32


def test_what_is_to_be_reached() -> None:
    measures = [
        Measure(intersections.SECTION, intersections.name_of(64), "runs/s", (60.0,)),
        Measure(intersections.SECTION, intersections.ceiling_name(64), "runs/s", (80.0,)),
    ]
    found = compare(measures)
    assert found == [Comparison("intersections: 64 topics / bare multiplications", 75.0, 60.0, "%", True)]
    assert found[0].reached
