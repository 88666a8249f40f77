from __future__ import annotations

from tests.cli.village import Tea


def test_a_new_room_says_what_comes_next(tea: Tea) -> None:
    said = tea.ada.ok("room", "create", "books", "--rule", "public")
    assert said.startswith("room    lt1")
    assert "next    linnet room invite books" in said
    assert tea.ada.json("room", "state", "books")["rule"] == "public"


def test_a_second_creator_has_all_power(tea: Tea) -> None:
    tea.ada.ok("room", "create", "shared", "--creator", tea.people["bea"])
    created = tea.ada.json("room", "state", "shared")["entries"][0]["content"]
    assert created["creators"] == [tea.people["bea"]]


def test_wrong_words(tea: Tea) -> None:
    assert "person id" in tea.ada.fails(2, "room", "create", "x", "--creator", "lp1")
    tea.ada.fails(2, "room", "create", "x", "--rule", "nobody")


def test_a_name_with_spaces_can_be_pasted_into_the_next_command(tea: Tea) -> None:
    said = tea.ada.ok("room", "create", "tea at five", "--rule", "public")
    assert "next    linnet room invite 'tea at five'" in said


def test_a_name_that_is_too_long_is_told_in_words(tea: Tea) -> None:
    said = tea.ada.fails(2, "room", "create", "x" * 201)
    assert "the name is too long: at most 200 characters" in said
