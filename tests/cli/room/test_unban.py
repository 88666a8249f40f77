from __future__ import annotations

from tests.cli.village import Tea


def test_who_was_banned_may_come_back(tea: Tea) -> None:
    tea.another("second chance")
    tea.ada.ok("room", "ban", "second chance", "bea")
    text = tea.ada.ok("room", "invite", "second chance").strip()
    said = tea.bea.fails(1, "room", "join", text, "--patience", "1")
    assert "banned" in said
    assert tea.ada.ok("room", "unban", "second chance", tea.people["bea"][:14]).startswith("unbanned lp1")
    tea.bea.ok("room", "join", text)
