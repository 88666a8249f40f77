from __future__ import annotations

from tests.cli.village import Tea


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
