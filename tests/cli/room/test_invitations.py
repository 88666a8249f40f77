from __future__ import annotations

import segno
from tests.cli.shell import Linnet
from tests.cli.village import Tea

from linnet.cli.room.members import QUIET, qr_text
from linnet.rooms.invitations import parse_invitation


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


def test_an_invitation_can_come_by_mail(tea: Tea) -> None:
    tea.ada.ok("room", "create", "mail")
    text = tea.ada.ok("room", "invite", "mail").strip()
    broken = "\n".join(text[at : at + 70] for at in range(0, len(text), 70))
    said = tea.bea.ok("room", "join", "-", given=broken + "\n")
    assert said.startswith("joined  mail lt1")
    assert "next    linnet chat lt1" in said


def test_what_is_wrong_with_an_invitation_is_told(tea: Tea, shell: Linnet) -> None:
    text = tea.ada.ok("room", "invite", "tea").strip()
    assert "cut short" in tea.bea.fails(2, "room", "join", text[:100])
    assert "a letter is wrong" in tea.bea.fails(
        2, "room", "join", text[:99] + "7a"[text[99] == "7"] + text[100:]
    )
    assert "is no invitation" in tea.bea.fails(2, "room", "join", "hello")
    assert "fails its checksum" in tea.bea.fails(2, "room", "join", tea.room[:-4] + "aaaa")
    assert "start one with: linnet up" in shell.fails(69, "room", "join", text)
    ours = tea.ada.ok("room", "invite", "tea", "--for", tea.people["ada"]).strip()
    assert "is for another person" in tea.bea.fails(2, "room", "join", ours)


def test_a_public_room_by_its_id(tea: Tea) -> None:
    room = tea.ada.json("room", "create", "open", "--rule", "public")["room"]
    assert tea.bea.json("room", "join", room, "--at", tea.ada.address)["room"] == room


def test_who_knocks_is_let_in(tea: Tea) -> None:
    room = tea.ada.json("room", "create", "club", "--rule", "knock")["room"]
    assert tea.bea.ok("room", "join", room, "--at", tea.ada.address, "--knock").startswith("knocked  lt1")
    tea.ada.ok("room", "invite", "club", "--for", tea.people["bea"], "--announce")
    assert tea.bea.ok("room", "join", room, "--at", tea.ada.address).startswith("joined  lt1")


def test_a_closed_room_says_no(tea: Tea) -> None:
    room = tea.ada.json("room", "create", "closed")["room"]
    said = tea.bea.fails(1, "room", "join", room, "--at", tea.ada.address, "--patience", "0.5")
    assert "not_invited" in said
    assert "linnet room invite" in said


def test_an_invitation_to_a_room_that_one_is_in_tells_where_others_are(tea: Tea) -> None:
    text = tea.ada.ok("room", "invite", "tea").strip()
    assert tea.bea.ok("room", "join", text).startswith(f"already in tea {tea.room}\ntried   ")
    found = tea.bea.json("room", "join", tea.room, "--at", tea.ada.address)
    assert (found["room"], found["refreshed"]) == (tea.room, 1)
    own = tea.ada.fails(1, "room", "join", tea.room, "--at", tea.ada.address)
    assert "no address of others is named" in own


TEXT = "li1" + "abcdefghijklmnopqrstuvwxyz234567" * 15


def squares(drawn: str, light: bool) -> list[list[bool]]:
    """The squares of a code, read back from its half blocks."""
    rows = []
    for line in drawn.splitlines():
        rows.append([(letter in "▀█") != light for letter in line])
        rows.append([(letter in "▄█") != light for letter in line])
    return rows


def test_each_square_is_where_it_belongs() -> None:
    code = segno.make_qr(TEXT.upper(), error="l", boost_error=False)
    expected = [[bool(square) for square in row] for row in code.matrix_iter(border=QUIET)]
    read = squares(qr_text(TEXT, colours=False), light=True)
    assert read[: len(expected)] == expected
    assert not any(map(any, read[len(expected) :]))


def test_an_invitation_fits_a_terminal() -> None:
    lines = qr_text(TEXT, colours=False).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 40


def test_in_colours_it_is_black_on_white() -> None:
    plain = qr_text("li1abc", colours=False).splitlines()
    coloured = qr_text("li1abc", colours=True).splitlines()
    assert len(plain) == len(coloured)
    bare = "\n".join(line.removeprefix("\x1b[30;107m").removesuffix("\x1b[0m") for line in coloured)
    assert squares(bare, light=False)[:-1] == squares("\n".join(plain), light=True)[:-1]
