"""What a node tells of its tracker's graphs."""

from __future__ import annotations

from typing import Any, cast

import pytest

from linnet.api.errors import ApiError
from linnet.api.node_commands import ExamineGraph, GraphNode, GraphReport, GraphRtt
from linnet.core.ids import PeerId, TopicId
from linnet.node.reports import Reported, Reports
from linnet.overlay.tracked_topic import Graph
from linnet.peer.interface import NodeStatus

TOPIC, A, B = TopicId(b"t" * 32), PeerId(b"a" * 32), PeerId(b"b" * 32)


def reports(*tracked: Graph) -> Reports:
    """Reports of a node that tracks these."""

    async def ask(command: Any) -> Any:  # noqa: ANN401 - any command
        return NodeStatus(A, bytes(32), 0.0, (), (), None, None, (), (), (), tracked)

    return Reports(cast("Reported", None), ask)


async def test_a_graph_has_every_node_and_what_was_measured() -> None:
    graph = Graph(TOPIC, 4, True, ((A, (B,)), (B, (A,))), ((A, B, 0.5),))
    other = Graph(TopicId(b"o" * 32), 2, False, (), ())
    found = await reports(other, graph).examine_graph(ExamineGraph(TOPIC))
    assert found == GraphReport(
        TOPIC, 4, True, (GraphNode(A, (B,)), GraphNode(B, (A,))), (GraphRtt(A, B, 0.5),)
    )


async def test_a_graph_of_another_tracker_is_not_found() -> None:
    with pytest.raises(ApiError, match="does not track that topic"):
        await reports().examine_graph(ExamineGraph(TOPIC))
