from __future__ import annotations

from tests.cli.village import Tea

from linnet.identity.text import Sort, to_text


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


def test_by_the_name_of_a_device(tea: Tea) -> None:
    tea.another("loud")
    said = tea.ada.ok("room", "kick", "loud", "bea", "--reason", "noise")
    assert said.startswith(f"removed {tea.people['bea']}\nsent to ")
    tea.until(lambda: membership(tea, "loud") == "leave")
    assert "not_a_member" in tea.bea.fails(1, "room", "send", "loud", "but")


def membership(tea: Tea, room: str) -> str:
    rooms = tea.bea.json("room", "list")["rooms"]
    return str(next(each["membership"] for each in rooms if each["name"] == room))


def test_who_is_not_there_is_told(tea: Tea) -> None:
    assert "there is nobody called 'cal' in the room" in tea.ada.fails(2, "room", "kick", "tea", "cal")
    assert "no_power" in tea.bea.fails(1, "room", "kick", "tea", "ada")


def test_someone_who_never_came(tea: Tea) -> None:
    stranger = to_text(Sort.PERSON, b"s" * 32)
    assert tea.ada.ok("room", "ban", "tea", stranger).startswith(f"banned {stranger}")
    members = {each["person"]: each for each in tea.ada.json("room", "members", "tea")["members"]}
    assert members[stranger]["membership"] == "ban"
    assert len(tea.ada.json("room", "unban", "tea", stranger[:12])["ids"]) == 1


def test_who_was_banned_may_come_back(tea: Tea) -> None:
    tea.another("second chance")
    tea.ada.ok("room", "ban", "second chance", "bea")
    text = tea.ada.ok("room", "invite", "second chance").strip()
    said = tea.bea.fails(1, "room", "join", text, "--patience", "1")
    assert "banned" in said
    assert tea.ada.ok("room", "unban", "second chance", tea.people["bea"][:14]).startswith("unbanned lp1")
    tea.bea.ok("room", "join", text)


def test_levels_are_shown_and_changed(tea: Tea) -> None:
    said = tea.ada.ok("room", "power", "tea")
    assert "all (creator)" in said
    assert tea.ada.ok("room", "power", "tea", "50", "--person", "bea").startswith("level of lp1")
    assert tea.ada.json("room", "power", "tea")["users"] == {tea.people["bea"]: 50}
    assert tea.ada.ok("room", "power", "tea", "7", "--kind", "mood").startswith("level of mood is 7\n")
    assert tea.ada.json("room", "power", "tea")["events"]["mood"] == 7
    assert "is the default" in tea.ada.ok("room", "power", "tea", "--kind", "mood", "--default")
    assert "mood" not in tea.ada.json("room", "power", "tea")["events"]
    tea.ada.ok("room", "power", "tea", "--person", "bea", "--default")
    assert tea.ada.json("room", "power", "tea")["users"] == {}


def test_a_level_needs_something_to_be_of(tea: Tea) -> None:
    for words in (("5",), ("--person", "bea"), ("5", "--person", "bea", "--kind", "x"), ("--default",)):
        assert "give a LEVEL" in tea.ada.fails(2, "room", "power", "tea", *words)
