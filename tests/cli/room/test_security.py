from __future__ import annotations

from pathlib import Path

from tests.cli.shell import Linnet
from tests.cli.village import Tea, up


def test_who_holds_keys_and_what_a_thief_could_read(tea: Tea) -> None:
    tea.until(lambda: tea.bea.json("room", "security", "tea")["holds_keys"])
    said = tea.bea.ok("room", "security", "tea")
    assert said.startswith("tea is encrypted: its members' devices can read it")
    assert said.count("holds them") >= 2
    assert "this one" in said
    assert "a thief of this device could read now:" in said
    assert "until its next update (in " in said
    found = tea.bea.json("room", "security", "tea")
    assert {each["label"] for each in found["devices"]} >= {"ada", "bea"}


def test_a_public_room_says_plainly_who_can_read_it(tea: Tea) -> None:
    tea.ada.ok("room", "create", "market", "--public")
    said = tea.ada.ok("room", "security", "market")
    assert said.startswith("market is not encrypted: whoever carries it")
    assert "thief" not in said


def test_all_rooms_in_short(tea: Tea, running: Linnet) -> None:
    rows = [line.split() for line in tea.bea.ok("room", "security").splitlines()]
    assert ["tea", tea.room, "yes"] in [row[:3] for row in rows]
    assert tea.room in [each["room"] for each in tea.bea.json("room", "security")["rooms"]]
    assert "no rooms" in running.ok("room", "security")


def test_two_compare_and_one_notes_it(tea: Tea) -> None:
    tea.another("numbers")
    ours = tea.ada.json("room", "security", "numbers", "--person", "bea")
    theirs = tea.bea.json("room", "security", "--person", tea.people["ada"])
    assert ours["safety_number"] == theirs["safety_number"]
    said = tea.ada.ok("room", "security", "numbers", "--person", "bea")
    assert " ".join(ours["safety_number"].split()[:4]) in said
    assert ours["safety_words"] in said
    assert "not verified" in said
    try:
        assert "verified 20" in tea.ada.ok("room", "security", "numbers", "--person", "bea", "--verify")
        rows = [line.split() for line in tea.ada.ok("room", "members", "numbers").splitlines()]
        assert [row[-2:] for row in rows if row[0] == "bea"] == [["yes", tea.people["bea"]]]
    finally:
        assert "not verified" in tea.ada.ok("room", "security", "numbers", "--person", "bea", "--unverify")


def test_what_is_asked_for_must_make_sense(tea: Tea) -> None:
    assert "--person WHO" in tea.ada.fails(2, "room", "security", "tea", "--verify")
    assert "in which room" in tea.ada.fails(2, "room", "security", "--person", "bea")


def test_another_under_a_known_name_is_told_once_to_who_reads(tea: Tea, tmp_path: Path) -> None:
    room = tea.another("masks")
    read = ("room", "read", "masks", "--from", "beginning", "--timeout", "0.5")
    assert tea.ada.run(*read).stderr == ""
    (tmp_path / "x").mkdir()
    with up(tmp_path / "x" / "bea") as eve:
        eve.ok("room", "join", tea.ada.ok("room", "invite", "masks").strip())
        person = eve.json("status")["person"]
        tea.until(lambda: tea.ada.json("room", "security", room)["warnings"])
        first, second = (tea.ada.run(*read).stderr for _ in range(2))
    assert first.startswith(f"! another person ({person[:19]}…) is called 'bea'")
    assert second == ""
    assert "is called 'bea'" in tea.ada.ok("room", "security", "masks")
