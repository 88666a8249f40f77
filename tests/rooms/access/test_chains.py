from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.core.ids import EventId
from linnet.rooms.access.chains import Chains

Graph = dict[EventId, tuple[EventId, ...]]


def name(number: int) -> EventId:
    return EventId(number.to_bytes(2, "big"))


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    size = draw(st.integers(1, 14))
    return {
        name(number): tuple(name(parent) for parent in draw(st.lists(st.integers(0, number - 1), max_size=3)))
        if number
        else ()
        for number in range(size)
    }


def reachable(graph: Graph, event: EventId) -> set[EventId]:
    found = {event}
    for parent in graph[event]:
        found |= reachable(graph, parent)
    return found


@given(graphs(), st.data())
def test_masks_are_what_is_reachable(graph: Graph, data: st.DataObject) -> None:
    """Whatever is asked for first."""
    chains = Chains(graph.__getitem__)
    for event in data.draw(st.permutations(list(graph))):
        listed = chains.events(chains.mask(event))
        assert set(listed) == reachable(graph, event)
        assert len(listed) == len(set(listed))
        assert chains.events(chains.bit(event)) == [event]
    assert len(chains) == len(graph)
    for event in graph:
        assert {other for other in graph if chains.reaches(event, other)} == reachable(graph, event)


@given(graphs(), st.data())
def test_events_are_listed_causes_first(graph: Graph, data: st.DataObject) -> None:
    chains = Chains(graph.__getitem__)
    some = data.draw(st.lists(st.sampled_from(list(graph))))
    listed = chains.events(chains.union(some))
    assert set(listed) == set().union(*(reachable(graph, event) for event in some))
    for position, event in enumerate(listed):
        assert set(graph[event]) <= set(listed[:position])
    everyone = chains.union(graph)
    assert chains.everything == everyone


@given(graphs(), st.data())
def test_what_lies_between(graph: Graph, data: st.DataObject) -> None:
    chains = Chains(graph.__getitem__)
    ends = set(data.draw(st.lists(st.sampled_from(list(graph)))))
    between = {
        event
        for event in graph
        if any(event in reachable(graph, end) for end in ends) and reachable(graph, event) & ends
    }
    assert set(chains.events(chains.through(chains.bits(ends)))) == between


def test_nothing_is_reachable_from_what_was_never_asked_for() -> None:
    graph: Graph = {name(0): (), name(1): ()}
    chains = Chains(graph.__getitem__)
    assert not chains.reaches(name(0), name(1))


def test_a_long_chain_is_no_trouble() -> None:
    graph: Graph = {name(number): (name(number - 1),) if number else () for number in range(20_000)}
    chains = Chains(graph.__getitem__)
    assert chains.mask(name(19_999)).bit_count() == 20_000
