"""Random causal graphs, and what a naive reader says of them."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

from linnet.core.ids import EventId
from linnet.delivery.causal_graph import Dag


class Node(NamedTuple):
    id: EventId
    height: int
    refs: tuple[EventId, ...]
    shown: bool
    mine: int | None


Graph = dict[EventId, Node]


def name(number: int) -> EventId:
    return EventId(sha256(number.to_bytes(8, "big")).digest())


def grow(rng: Random, events: int, width: int = 5, hidden: float = 0.0) -> Graph:
    """A graph whose events name up to three of the last few; every fourth is ours, in one chain."""
    graph: Graph = {}
    ids: list[EventId] = []
    mine: list[EventId] = []
    for number in range(events):
        recent = ids[-width:]
        refs = rng.sample(recent, min(len(recent), rng.randint(1, 3))) if recent else []
        own = rng.random() < 0.25
        if own and mine:
            refs.append(mine[-1])
        node = Node(
            name(number),
            1 + max((graph[ref].height for ref in refs), default=-1),
            tuple(dict.fromkeys(refs)),
            rng.random() >= hidden,
            len(mine) if own else None,
        )
        if own:
            mine.append(node.id)
        graph[node.id] = node
        ids.append(node.id)
    return graph


def build(nodes: Iterable[Node]) -> Dag:
    dag = Dag()
    for node in nodes:
        dag.add(node.id, node.height, node.refs, node.shown, node.mine)
    return dag


def past(graph: Graph, ids: Iterable[EventId]) -> set[EventId]:
    """Everything before these, themselves included."""
    found: set[EventId] = set()
    stack = list(ids)
    while stack:
        id = stack.pop()
        if id not in found and id in graph:
            found.add(id)
            stack.extend(graph[id].refs)
    return found


def part(graph: Graph, ids: Iterable[EventId]) -> Graph:
    """What somebody knows who knows these and all that came before, in the graph's order."""
    known = past(graph, ids)
    return {id: node for id, node in graph.items() if id in known}


@st.composite
def graphs(draw: st.DrawFn, most: int = 40, hidden: float = 0.2) -> Graph:
    """Small graphs of any shape."""
    rng = Random(draw(st.integers(0, 2**32)))
    return grow(rng, draw(st.integers(0, most)), draw(st.integers(1, 12)), hidden)


@st.composite
def splits(draw: st.DrawFn, most: int = 40) -> tuple[Graph, Graph, Graph]:
    """A graph, and what two nodes know of it."""
    graph = draw(graphs(most))
    ids = list(graph)
    some = st.lists(st.sampled_from(ids), max_size=6) if ids else st.just([])
    return graph, part(graph, draw(some)), part(graph, draw(some))
