from __future__ import annotations

from tests.cli.village import Tea

from linnet.rooms.invitation import parse_invitation


def test_the_text_is_alone_on_standard_output(tea: Tea) -> None:
    result = tea.ada.run("room", "invite", "tea", "--lasts", "2h")
    assert parse_invitation(result.stdout).name == "tea"
    assert "good for whoever holds it until " in result.stderr
    assert result.stdout.count("\n") == 1


def test_a_code_for_cameras(tea: Tea) -> None:
    lines = tea.ada.ok("room", "invite", "tea", "--qr").splitlines()
    assert lines[0].startswith("li1")
    assert set("".join(lines[1:])) == set(" ▀▄█")


def test_for_one_person(tea: Tea) -> None:
    reply = tea.ada.json("room", "invite", "tea", "--for", tea.people["bea"])
    assert reply["person"] == tea.people["bea"]
    assert tea.ada.address in reply["contacts"]


def test_wrong_words(tea: Tea) -> None:
    assert "is no length of time" in tea.ada.fails(2, "room", "invite", "tea", "--lasts", "soon")
    assert "needs --for" in tea.ada.fails(2, "room", "invite", "tea", "--announce")
    assert "there is no room 'coffee' here; there are" in tea.ada.fails(2, "room", "invite", "coffee")
