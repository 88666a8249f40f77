from __future__ import annotations

import json

from tests.cli.shell import Linnet


def test_it_says_where_it_begins_and_how_much_is_shown(running: Linnet) -> None:
    running.ok("publish", "kept", "--lines", given="h1\nh2\nh3\n")
    result = running.run("history", "kept", "--limit", "2")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 2
    assert "history begins 20" in result.stderr
    assert "2 of " in result.stderr
    everything = running.ok("history", "kept").splitlines()
    assert everything[-3:] == ["h1", "h2", "h3"]


def test_json_has_the_events_and_beside_them_where_it_begins(running: Linnet) -> None:
    running.ok("publish", "kept", "again")
    result = running.run("history", "kept", "--json")
    assert json.loads(result.stdout.splitlines()[-1])["text"] == "again"
    told = json.loads(result.stderr.splitlines()[-1])
    assert told["type"] == "caught_up"
    assert told["begins_at"] > 0
    assert told["evicted"] is False


def test_from_now_on_there_is_none(running: Linnet) -> None:
    running.ok("publish", "kept", "before")
    assert running.ok("history", "kept", "--from", "now") == ""


def test_wrong_times_are_told(running: Linnet) -> None:
    assert "is no time" in running.fails(2, "history", "kept", "--from", "soon")
