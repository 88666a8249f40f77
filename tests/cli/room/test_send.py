from __future__ import annotations

from tests.cli.village import Tea

from linnet.core.limits import BODY_BYTES


def test_its_id_and_to_how_many_it_went(tea: Tea) -> None:
    said = tea.ada.ok("room", "send", "tea", "Did it arrive?", "--deadline", "60")
    first, second = said.splitlines()
    assert first.startswith("event   le1")
    assert second.startswith("sent to 1 member online")


def test_standard_input_whole_or_in_lines(tea: Tea) -> None:
    assert len(tea.ada.json("room", "send", "tea", given=b"\xff\n\n")["ids"]) == 1
    assert tea.ada.ok("room", "send", "tea", "--lines", given="a\nb\n").startswith(
        "events  2, the last is le1"
    )
    assert "standard input was empty" in tea.ada.ok("room", "send", "tea", given="")


def test_by_any_name_of_the_room(tea: Tea) -> None:
    for name in (tea.room, tea.room[:12], "tea", "TEA"):
        assert tea.ada.json("room", "send", name, "x")["room"] == tea.room


def test_wrong_words(tea: Tea) -> None:
    assert "give - instead" in tea.ada.fails(2, "room", "send", "tea", "text", "--lines")
    assert "too_large" in tea.ada.fails(1, "room", "send", "tea", given=b"x" * (BODY_BYTES + 1))
    assert "there is no room" in tea.ada.fails(2, "room", "send", "lt1", "x")
