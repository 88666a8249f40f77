from __future__ import annotations

import pytest
from tests.cli.village import Tea

from linnet.cli.exits import Failure
from linnet.cli.room.state import setting


def test_what_holds_and_setting_it(tea: Tea) -> None:
    tea.ada.ok("room", "create", "walls")
    assert tea.ada.ok("room", "state", "walls", "--set", "color/wall=green").startswith("set ")
    assert tea.ada.ok("room", "state", "walls", "--rule", "public").startswith("join by public")
    said = tea.ada.ok("room", "state", "walls")
    assert "join    public" in said
    assert any(line.split()[:3] == ["color", "wall", "green"] for line in said.splitlines())
    tea.ada.ok("room", "state", "walls", "--set", "name=floors")
    assert tea.ada.json("room", "state", "floors")["digest"]


def test_what_is_set() -> None:
    assert setting("name=tea") == ("name", "", "tea")
    assert setting("a/b/c=d=e") == ("a", "b/c", "d=e")
    for text in ("name", "=x", ""):
        with pytest.raises(Failure, match="sets nothing"):
            setting(text)


def test_one_at_a_time(tea: Tea) -> None:
    assert "one at a time" in tea.ada.fails(2, "room", "state", "tea", "--set", "a=b", "--rule", "public")
    assert "no_power" in tea.bea.fails(1, "room", "state", "tea", "--set", "name=coffee")
