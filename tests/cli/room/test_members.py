from __future__ import annotations

from tests.cli.village import Tea


def test_names_power_and_who_is_online(tea: Tea) -> None:
    tea.until(lambda: tea.bea.json("room", "security", "tea")["holds_keys"])
    said = tea.bea.ok("room", "members", "tea")
    rows = [line.split() for line in said.splitlines()]
    assert ["ada", "join", "all", "(creator)", "yes", "1", "1", "no", tea.people["ada"]] in rows
    assert any(row[:2] == ["bea", "join"] for row in rows)
    assert {each["label"] for each in tea.bea.json("room", "members", "tea")["members"]} >= {"ada", "bea"}


def test_those_who_are_gone_only_if_asked_for(tea: Tea) -> None:
    tea.another("quiet")
    tea.ada.ok("room", "kick", "quiet", "bea")
    assert "bea" not in tea.ada.ok("room", "members", "quiet")
    assert "leave" in tea.ada.ok("room", "members", "quiet", "--all")


def test_a_public_room_has_no_devices_with_keys(tea: Tea) -> None:
    tea.ada.ok("room", "create", "square", "--public")
    (row,) = [line.split() for line in tea.ada.ok("room", "members", "square").splitlines()[2:]]
    assert row[:8] == ["ada", "join", "all", "(creator)", "yes", "1", "-", "no"]
