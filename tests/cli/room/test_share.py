from __future__ import annotations

from tests.cli.village import Tea


def test_newcomers_are_shown_what_was_said_before(tea: Tea) -> None:
    tea.ada.ok("room", "create", "open-book", "--history", "shared")
    tea.ada.ok("room", "send", "open-book", "chapter one")
    invitation = tea.ada.json("room", "invite", "open-book")["text"]
    tea.bea.ok("room", "join", invitation)
    tea.ada.ok("room", "send", "open-book", "chapter two")
    tea.until(lambda: "chapter two" in tea.bea.ok("room", "history", "open-book"))
    before = tea.bea.ok("room", "history", "open-book")
    assert "chapter one" not in before
    assert "said before you were let in" in before
    assert "shown to the room" in tea.ada.ok("room", "share", "open-book")
    tea.until(lambda: "chapter one" in tea.bea.ok("room", "history", "open-book"))


def test_where_it_was_not_founded_so_nothing_is_shown(tea: Tea) -> None:
    assert "from one's joining on" in tea.ada.fails(1, "room", "share", "tea")
