"""The published workload."""

from __future__ import annotations

from linnet.content.predicate import read_attributes, read_predicate
from linnet.sim.content_workload import Course, Workload

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
