"""Scenarios of content in simulation: what is expected, and why rendezvous have to be looked up."""

from __future__ import annotations

import os
from math import ceil, log2

import pytest

from linnet.sim.content import ContentReport, ContentScenario, Variant, run_content
from linnet.sim.content_workload import Course

SOAK = os.environ.get("LINNET_SOAK") == "1"


def run(**chosen: object) -> ContentReport:
    return run_content(ContentScenario(**chosen))  # type: ignore[arg-type] # its fields


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize(
    ("course", "expected"), [(Course.NORMAL, 112), (Course.SUB_BURST, 112), (Course.FAULT, 108)]
)
def test_the_published_scenarios_lose_nothing_at_60_nodes(
    variant: Variant, course: Course, expected: int
) -> None:
    report = run(variant=variant, course=course)
    assert (report.expected, report.missing, report.false_positives) == (expected, 0, 0)
    assert report.rendezvous_disagreements == 0
    assert report.duplicates_share < 0.0833, "the least that was published"
    assert report.untold == 0


@pytest.mark.parametrize("variant", Variant)
def test_a_burst_of_events_loses_nothing(variant: Variant) -> None:
    report = run(nodes=60 if SOAK else 30, variant=variant, course=Course.EVENT_BURST)
    assert (report.missing, report.false_positives) == (0, 0)
    assert report.duplicates_share < 0.0461


def test_equal_seeds_give_equal_runs_and_others_others() -> None:
    first, again, other = (run(nodes=20, seed=seed) for seed in (4, 4, 5))
    assert first.trace_sha256 == again.trace_sha256 != other.trace_sha256


def test_with_gaps_in_what_nodes_know_lookups_are_what_makes_rendezvous_agree() -> None:
    """The published loss at 250 nodes, in small: who knows of nobody closer believes to be the rendezvous."""
    as_published = run(nodes=60, contacts=12, confirm=False)
    confirmed = run(nodes=60, contacts=12)
    assert as_published.rendezvous_disagreements > 0
    assert as_published.missing > 0
    assert (confirmed.rendezvous_disagreements, confirmed.missing) == (0, 0)


@pytest.mark.parametrize(("contacts", "seed"), [(5, 1), (5, 2), (6, 1), (6, 2), (8, 1), (8, 2)])
def test_where_lookups_disagree_as_well_rendezvous_find_each_other(contacts: int, seed: int) -> None:
    """Each node knows a handful of sixty: without claims, 3 to 24 deliveries are missing in these runs."""
    report = run(nodes=60, contacts=contacts, seed=seed)
    assert (report.rendezvous_disagreements, report.missing) == (0, 0)


def test_a_fault_is_told_to_the_publisher() -> None:
    report = run(course=Course.FAULT)
    assert report.unsettled > 0


@pytest.mark.parametrize("nodes", [15, 30, 60, *([250, 1000] if SOAK else [])])
def test_hops_are_logarithmic(nodes: int) -> None:
    """On the way up and down together; each step halves the distance, or better."""
    report = run(nodes=nodes)
    assert report.max_hops <= ceil(log2(nodes)) + 1
    assert report.mean_hops <= log2(nodes) / 2


LARGE = [(nodes, course) for nodes in (250, 1000, 5000) for course in (Course.NORMAL, Course.SUB_BURST)]
LARGE += [(nodes, Course.EVENT_BURST) for nodes in (250, 1000)]


@pytest.mark.skipif(not SOAK, reason="a heavy count; `make soak` runs it")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("nodes", "course"), LARGE)
def test_nothing_is_missing_in_larger_networks(nodes: int, course: Course) -> None:
    report = run(nodes=nodes, course=course)
    assert (report.missing, report.false_positives, report.rendezvous_disagreements) == (0, 0, 0)
    assert report.duplicates_share < 0.0461, "the least that was published, at 60 nodes"


PLACES = range(0, 60, 1 if SOAK else 10)


def faults(backups: int, crashes: int) -> list[ContentReport]:
    """Nodes with consecutive ids crash silently at many places; what is missed is not sent later."""
    chosen = {"course": Course.FAULT, "backups": backups, "crashes": crashes, "lately": 0.0}
    return [run(place=place, **chosen) for place in PLACES]


@pytest.mark.parametrize("backups", [1, 2, 3])
def test_as_many_consecutive_crashes_as_backups_lose_nothing(backups: int) -> None:
    assert [(report.missing, report.crashed) for report in faults(backups, backups)] == [
        (0, backups) for _ in PLACES
    ]


@pytest.mark.parametrize("backups", [0, 1, 2, 3])
def test_one_crash_more_may_lose_something_but_never_without_a_word(backups: int) -> None:
    reports = faults(backups, backups + 1 if backups else 3)
    assert [report.untold for report in reports] == [0 for _ in PLACES]
    if not backups:
        assert sum(report.missing for report in reports) > 0, "or the test before this one shows nothing"
