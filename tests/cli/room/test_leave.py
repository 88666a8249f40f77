from __future__ import annotations

from tests.cli.village import Tea


def test_who_leaves_is_gone(tea: Tea) -> None:
    room = tea.another("farewell")
    assert tea.bea.ok("room", "leave", "farewell") == f"left    {room}\n"

    def left() -> bool:
        members = tea.ada.json("room", "members", "farewell")["members"]
        return any(each["membership"] == "leave" for each in members)

    tea.until(left)
    assert tea.ada.json("room", "leave", "farewell") == {"room": room, "left": True}
