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


HOSTILE = b"\x1b]52;c;b3duZWQ=\x07\x1b[2J\rfake\nline \x9b2J \xc2\x9b \xe2\x80\xae"
SHOWN = rb"\x1b]52;c;b3duZWQ=\x07\x1b[2J\rfake\nline \x9b2J \x9b \u202e"


def test_what_a_publisher_says_moves_no_terminal_and_forges_no_line(running: Linnet) -> None:
    running.ok("publish", "kept", "-", given=HOSTILE)
    count = str(len(running.ok("history", "kept").splitlines()))
    for words in (("history", "kept"), ("subscribe", "kept", "--from", "beginning", "--count", count)):
        written = running.at_terminal(*words)
        assert SHOWN in written.splitlines()
        assert not {0x1B, 0x07, 0x0D, 0x9B} & set(written)
        assert b"\xe2\x80\xae" not in written
        assert b"\x1b" not in running.at_terminal(*words, "--json")
        assert b"\xc2\x9b" not in running.at_terminal(*words, "--json")


def test_into_a_pipe_it_is_written_out_too_unless_it_is_wanted_as_it_is(running: Linnet) -> None:
    running.ok("publish", "kept", "-", given=HOSTILE)
    lines = running.ok("history", "kept").splitlines()
    assert lines[-1] == SHOWN.decode()
    assert running.run("history", "kept", "--raw").stdout_bytes.endswith(HOSTILE + b"\n")
    words = ("subscribe", "kept", "--from", "beginning", "--count", str(len(lines)), "--raw")
    assert running.run(*words).stdout_bytes.endswith(HOSTILE + b"\n")
