"""Scenarios of content in simulation: what is expected, and why rendezvous have to be looked up."""

from __future__ import annotations

import os
from math import ceil, log2

import pytest

from linnet.content.attribute_keys import attribute_key, distance
from linnet.content.predicate import read_attributes, read_predicate
from linnet.core.ids import PeerId
from linnet.sim.content.scenario import ContentReport, ContentScenario, Course, Variant, Workload, run_content
from linnet.sim.content.world import Tables

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
    assert report.missing == 0
    assert 1 < report.max_hops <= ceil(log2(nodes)) + 1
    assert 0.5 < report.mean_hops <= log2(nodes) / 2


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


NAMES = [f"n{number}" for number in range(60)]


def test_sixty_nodes_are_four_publishers_and_56_subscribers_with_two_subscriptions() -> None:
    workload = Workload(NAMES, Course.NORMAL)
    assert (len(workload.publishers), len(workload.subscribers)) == (4, 56)
    assert len(workload.subscriptions()) == 112
    assert (workload.further(), workload.crashed(), len(workload.publications())) == ([], [], 4)


def test_each_subscriber_expects_two_events() -> None:
    workload = Workload(NAMES, Course.NORMAL)
    said = [read_attributes(each.attributes) for each in workload.publications()]
    for name in workload.subscribers:
        asked = [read_predicate(text) for who, text in workload.subscriptions() if who == name]
        assert sum(any(each.covers(event) for each in asked) for event in said) == 2


def test_in_bursts_all_take_part_and_two_of_the_last_group_crash() -> None:
    assert len(Workload(NAMES, Course.SUB_BURST).further()) == 112
    said = Workload(NAMES, Course.EVENT_BURST).publications()
    assert len(said) == 60
    assert all(read_attributes(each.attributes).size for each in said)
    fault = Workload(NAMES, Course.FAULT)
    assert [fault.group(fault.subscribers.index(name)) for name in fault.crashed()] == [5, 5]


PEERS = [PeerId(bytes([number, number]) * 16) for number in range(1, 120)]
KEY = attribute_key("stock")


def test_full_tables_lead_to_the_closest_from_everywhere() -> None:
    tables = Tables(PEERS, 1)
    closest = min(PEERS, key=lambda peer: distance(peer, KEY))
    found = {tables.search(peer, KEY)[0] for peer in PEERS if peer != closest}
    assert found == {closest}
    assert closest not in tables.search(closest, KEY)


def test_who_is_down_is_known_and_not_found() -> None:
    tables = Tables(PEERS[:20], 1)
    ordered = sorted(PEERS[:20], key=lambda peer: distance(peer, KEY))
    tables.fail(ordered[0])
    assert tables.near(ordered[5], KEY, 1) == [ordered[0]]
    assert tables.search(ordered[5], KEY)[0] == ordered[1]


def test_tables_are_bounded_and_can_be_given() -> None:
    tables = Tables(PEERS, 1, most=8)
    assert len(tables.near(PEERS[0], KEY, 100)) == 8
    tables.know(PEERS[0], PEERS[1:3])
    assert sorted(tables.near(PEERS[0], KEY, 100)) == PEERS[1:3]
