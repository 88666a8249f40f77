from __future__ import annotations

from tests.cli.shell import Linnet
from tests.cli.village import Tea


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
