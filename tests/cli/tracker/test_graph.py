from __future__ import annotations

from tests.cli.shell import Linnet

from linnet.cli.tracker.graph import dot_lines, graph_rows
from linnet.node.control_types import EdgeView, GraphReply, RttView

REPLY = GraphReply(
    "lt1x",
    4,
    False,
    (
        EdgeView("ld1aaaaaaaaaaaaaaaa", ("ld1bbbbbbbbbbbbbbbb",)),
        EdgeView("ld1bbbbbbbbbbbbbbbb", ("ld1aaaaaaaaaaaaaaaa",)),
    ),
    (RttView("ld1aaaaaaaaaaaaaaaa", "ld1bbbbbbbbbbbbbbbb", 0.0123),),
)


def test_each_link_is_drawn_once_with_its_time() -> None:
    assert dot_lines(REPLY) == [
        'graph "lt1x" {',
        '  "ld1aaaaaaaaaaaaaaaa" [label="ld1aaaaaaaaaaa…"];',
        '  "ld1bbbbbbbbbbbbbbbb" [label="ld1bbbbbbbbbbb…"];',
        '  "ld1aaaaaaaaaaaaaaaa" -- "ld1bbbbbbbbbbbbbbbb" [label="12.3 ms"];',
        "}",
    ]


def test_every_node_has_a_row() -> None:
    assert graph_rows(REPLY) == [
        ("ld1aaaaaaaaaaaaaaaa", ["ld1bbbbbbbbbbb… (12.3 ms)"]),
        ("ld1bbbbbbbbbbbbbbbb", ["ld1aaaaaaaaaaa…"]),
    ]


def test_the_tracker_shows_what_it_tracks(running: Linnet) -> None:
    running.ok("publish", "kept", "something")
    topics = running.json("tracker", "graph")["topics"]
    (kept,) = [each["topic"] for each in topics if each["name"] == "kept"]
    assert "kept" in running.ok("tracker", "graph")
    reply = running.json("tracker", "graph", "kept")
    assert (reply["topic"], len(reply["nodes"])) == (kept, 1)
    assert running.json("tracker", "graph", kept) == reply
    assert running.ok("tracker", "graph", "kept").startswith("1 node, 0 links, degree ")
    assert running.ok("tracker", "graph", "kept", "--format", "dot").startswith(f'graph "{kept}" {{')
    assert "does not track" in running.fails(1, "tracker", "graph", "nobody")
