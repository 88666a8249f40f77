from __future__ import annotations

import pytest
from tests.cli.village import Tea

from linnet.cli.room.ledger import show_ledger, watched
from linnet.cli.room.names import Names
from linnet.node.room_types import EventFatesView, LedgerReply, MemberFateView
from linnet.rooms.results import Fate


def test_members_by_fate_and_one_event(tea: Tea) -> None:
    tea.another("post")
    event = tea.ada.json("room", "send", "post", "hello")["ids"][0]
    said = tea.ada.ok("room", "ledger", "post", event, "--watch")
    assert said.rstrip().endswith("arrived at bea")
    table = tea.ada.ok("room", "ledger", "post")
    assert "✓✓" in table
    assert "arrived at all" in table
    assert any(line.split()[:2] == ["bea", "1"] for line in table.splitlines())
    (only,) = tea.ada.json("room", "ledger", "post", event[:20])["events"]
    assert [each["label"] for each in only["members"]] == ["bea"]


def test_nothing_said_yet(capsys: pytest.CaptureFixture[str]) -> None:
    show_ledger(LedgerReply("lt1", ()), Names(), False)
    assert capsys.readouterr().out == "you have said nothing here yet\n"


def test_watching_shows_changes_until_all_has_arrived() -> None:
    def reply(fate: Fate) -> LedgerReply:
        fates = (MemberFateView("lp1", "", fate, None, (), None),)
        return LedgerReply("lt1", (EventFatesView("le1", "message", 0, fates),))

    looks = iter([reply(Fate.PENDING), reply(Fate.PENDING), reply(Fate.AT_RELAY), reply(Fate.DELIVERED)])
    shown: list[LedgerReply] = []
    watched(lambda: next(looks), shown.append, 0.001)
    assert shown == [reply(Fate.PENDING), reply(Fate.AT_RELAY), reply(Fate.DELIVERED)]
