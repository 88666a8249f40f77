from __future__ import annotations

from tests.cli.shell import Linnet

from linnet.api.node_commands import GraphNode, GraphReport, GraphRtt
from linnet.cli.operators import dot_lines, graph_rows, report_lines
from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.identity.text import device_text, person_text, topic_text
from linnet.rooms.commands import RelayKnowledge, RelayReport, RelayRoomReport
from linnet.rooms.event_types import Membership

A, B, TOPIC = PeerId(b"a" * 32), PeerId(b"b" * 32), TopicId(b"x" * 32)


A_TEXT, B_TEXT = device_text(A), device_text(B)


REPORT = GraphReport(TOPIC, 4, False, (GraphNode(A, (B,)), GraphNode(B, (A,))), (GraphRtt(A, B, 0.0123),))


def test_each_link_is_drawn_once_with_its_time() -> None:
    assert dot_lines(REPORT) == [
        f'graph "{topic_text(TOPIC)}" {{',
        f'  "{A_TEXT}" [label="{A_TEXT[:14]}…"];',
        f'  "{B_TEXT}" [label="{B_TEXT[:14]}…"];',
        f'  "{A_TEXT}" -- "{B_TEXT}" [label="12.3 ms"];',
        "}",
    ]


def test_every_node_has_a_row() -> None:
    assert graph_rows(REPORT) == [(A_TEXT, [f"{B_TEXT[:14]}… (12.3 ms)"]), (B_TEXT, [f"{A_TEXT[:14]}…"])]


def test_the_tracker_shows_what_it_tracks(running: Linnet) -> None:
    running.ok("publish", "graphed", "something")
    topics = running.json("tracker", "graph")["topics"]
    (graphed,) = [each["topic"] for each in topics if each["name"] == "graphed"]
    assert "graphed" in running.ok("tracker", "graph")
    reply = running.json("tracker", "graph", "graphed")
    assert (reply["topic"], len(reply["nodes"])) == (graphed, 1)
    assert running.json("tracker", "graph", graphed) == reply
    assert running.ok("tracker", "graph", "graphed").startswith("1 node, 0 links, degree ")
    assert running.ok("tracker", "graph", "graphed", "--format", "dot").startswith(f'graph "{graphed}" {{')
    assert "does not track" in running.fails(1, "tracker", "graph", "nobody")


ADA, BEA, TEA = AuthorId(b"a" * 32), AuthorId(b"b" * 32), TopicId(b"t" * 32)


def test_a_relay_without_rooms_knows_nobody() -> None:
    assert list(report_lines(RelayReport(b"", ()))) == [
        "This relay serves no room, and knows nothing of anyone."
    ]


def test_all_that_is_known_in_plain_words() -> None:
    ada = RelayKnowledge(ADA, Membership.JOIN, 2, 5, 4000, 1, 1000, 2000.0, 3, 1)
    bea = RelayKnowledge(BEA, Membership.BAN, 1, 0, 0, 0, None, None, 0)
    room = RelayRoomReport(TEA, 4, 5, 4000, 2_500_000, 100.0, 7, 1, 1, (ada, bea), 2, 1000)
    said = list(report_lines(RelayReport(b"", (room,))))
    assert said[:3] == ["This relay serves 1 room.", "", f"Room {topic_text(TEA)}"]
    assert said[3].startswith("  It keeps 5 events (4.0 kB) for those who are away, the oldest since 1970")
    assert said[4] == "  It knows who may do what from 4 control events, kept for good."
    assert said[5] == "  1 event of those kept set names or other plain state."
    assert said[6] == "  2 events (1.0 kB) of those kept are about the room's keys."
    assert said[7] == "  It keeps 2.5 MB of attachments."
    assert said[8] == "  It let go of 7 whose time was over and 1 for want of space."
    assert said[9:11] == [
        f"  {person_text(ADA)} is a member",
        "    1 device, 2 control events, 5 events kept (4.0 kB)",
    ]
    assert said[11].startswith("    the last event kept was said at 1970-01-01")
    assert said[12].startswith("    last asked 1970")
    assert said[12].endswith("; 3 receipts of what has arrived there")
    assert said[13] == "    it keeps how far 1 device of theirs has read"
    assert said[14] == f"  {person_text(BEA)} is banned"
    assert said[16] == "    never asked for anything; no receipt of what has arrived there"
