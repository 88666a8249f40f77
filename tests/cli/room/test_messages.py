from __future__ import annotations

import json
import subprocess

import pytest
from tests.cli.shell import LINNET
from tests.cli.village import Tea

from linnet.cli.room.messages import say_sent, went_to
from linnet.cli.running_node import Session
from linnet.core.ids import EventId, TopicId
from linnet.core.limits import BODY_BYTES
from linnet.rooms.commands import Sent


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


def test_what_is_said_while_it_runs(tea: Tea) -> None:
    tea.another("live")
    command = [*LINNET, "room", "read", "live", "--from", "beginning", "--no-state", "--count", "2"]
    with subprocess.Popen(
        [*command, "--home", str(tea.bea.home)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        tea.ada.ok("room", "send", "live", "hello")
        assert process.stdout.readline()[6:] == "ada: hello\n"
        tea.bea.ok("room", "send", "live", "hello yourself")
        assert process.communicate(timeout=20)[0][6:] == "bea: hello yourself\n"
    assert process.returncode == 0


def test_a_named_reader_goes_on(tea: Tea) -> None:
    tea.ada.ok("room", "create", "durable")
    tea.ada.ok("room", "send", "durable", "--lines", given="a\nb\nc\n")
    words = ("room", "read", "durable", "--name", "r", "--no-state", "--json")
    first = tea.ada.ok(*words, "--from", "beginning", "--count", "2")
    assert [json.loads(line)["text"] for line in first.splitlines()] == ["a", "b"]
    assert json.loads(tea.ada.ok(*words, "--count", "1"))["text"] == "c"


def test_a_time_limit_ends_it(tea: Tea) -> None:
    said = tea.ada.fails(1, "room", "read", "tea", "--count", "1", "--timeout", "0.2")
    assert "0 of 1 event came in 0.2 s" in said


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


def test_what_was_said_is_taken_back(tea: Tea) -> None:
    event = tea.ada.json("room", "send", "tea", "oops")["ids"][0]
    said = tea.ada.ok("room", "redact", "tea", event[:20], "--reason", "typo")
    assert said.startswith(f"taken back: {event}")
    assert f"took back {event[:12]}…: typo" in tea.ada.ok("room", "history", "tea")
    assert "checksum" in tea.ada.fails(2, "room", "redact", "tea", event[:-4] + "aaaa")


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


@pytest.mark.parametrize(
    ("neighbors", "relays", "words"),
    [
        (0, 0, "nobody yet: it goes out when a member or relay appears"),
        (1, 0, "1 member online"),
        (0, 2, "2 relays"),
        (3, 1, "3 members online and 1 relay"),
    ],
)
def test_to_whom_it_went(neighbors: int, relays: int, words: str) -> None:
    assert went_to(neighbors, relays) == words


def test_it_is_told_in_words_or_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    reply = Sent(TopicId(bytes(32)), (EventId(bytes(32)),), 1, ())
    say_sent(reply, "done", Session())
    assert capsys.readouterr().out == "done\nsent to 1 member online\n"
    say_sent(reply, "done", Session(as_json=True))
    assert json.loads(capsys.readouterr().out)["neighbors"] == 1
