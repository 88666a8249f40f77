from __future__ import annotations

from linnet.cli.relay.report import lines
from linnet.node.room_types import RelayKnowledgeView, RelayReportReply, RelayRoomView
from linnet.rooms.content import Membership


def test_a_relay_without_rooms_knows_nobody() -> None:
    assert list(lines(RelayReportReply("00", ()))) == [
        "This relay serves no room, and knows nothing of anyone."
    ]


def test_all_that_is_known_in_plain_words() -> None:
    ada = RelayKnowledgeView("lp1ada", Membership.JOIN, 2, 5, 4000, 1, 1000, 2000.0, 3, 1)
    bea = RelayKnowledgeView("lp1bea", Membership.BAN, 1, 0, 0, 0, None, None, 0)
    room = RelayRoomView("lt1tea", 4, 5, 4000, 2_500_000, 100.0, 7, 1, 1, (ada, bea), 2, 1000)
    said = list(lines(RelayReportReply("00", (room,))))
    assert said[:3] == ["This relay serves 1 room.", "", "Room lt1tea"]
    assert said[3].startswith("  It keeps 5 events (4.0 kB) for those who are away, the oldest since 1970")
    assert said[4] == "  It knows who may do what from 4 control events, kept for good."
    assert said[5] == "  1 event of those kept set names or other plain state."
    assert said[6] == "  2 events (1.0 kB) of those kept are about the room's keys."
    assert said[7] == "  It keeps 2.5 MB of attachments."
    assert said[8] == "  It let go of 7 whose time was over and 1 for want of space."
    assert said[9:11] == ["  lp1ada is a member", "    1 device, 2 control events, 5 events kept (4.0 kB)"]
    assert said[11].startswith("    the last event kept was said at 1970-01-01")
    assert said[12].startswith("    last asked 1970")
    assert said[12].endswith("; 3 receipts of what has arrived there")
    assert said[13] == "    it keeps how far 1 device of theirs has read"
    assert said[14] == "  lp1bea is banned"
    assert said[16] == "    never asked for anything; no receipt of what has arrived there"
