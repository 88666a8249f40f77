from __future__ import annotations

from tests.cli.village import Tea


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
