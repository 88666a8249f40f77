from __future__ import annotations

import json

from tests.cli.village import Tea


def test_all_that_is_kept_then_the_end(tea: Tea) -> None:
    tea.ada.ok("room", "create", "past")
    tea.ada.ok("room", "send", "past", "--lines", given="one\ntwo\n")
    result = tea.ada.run("room", "history", "past")
    lines = [line[6:] for line in result.stdout.splitlines()]
    assert lines[0] == "* ada founded the room"
    assert lines[-2:] == ["ada: one", "ada: two"]
    assert "* ada set the name to 'past'" in lines
    assert result.exit_code == 0
    short = tea.ada.run("room", "history", "past", "--no-state", "--limit", "1", "--json")
    assert json.loads(short.stdout)["text"] == "one"
    assert "1 of 2 events are shown" not in short.stdout
    assert tea.ada.ok("room", "history", "past", "--from", "now") == ""
