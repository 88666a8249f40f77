"""A conversation of two processes through pipes, and the screen that it is typed at."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.shell import LINNET
from tests.cli.village import Tea, up

from linnet.cli.room.chat import Screen

LIMIT = 20.0


class Talk:
    """A running chat."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def until(self, words: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if words in line:
                return line.rstrip("\n")
        raise AssertionError(f"the chat ended before it said {words!r}")


@contextmanager
def chatting(tea: Tea, name: str, *options: str) -> Iterator[Talk]:
    home = str(getattr(tea, name).home)
    command = [*LINNET, "chat", *options, "--home", home]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        guard = threading.Timer(60, process.kill)
        guard.start()
        try:
            yield Talk(process)
        finally:
            guard.cancel()
            if process.poll() is None:
                process.kill()


def test_two_talk_and_see_what_arrives(tea: Tea) -> None:
    tea.another("talk")
    with chatting(tea, "ada", "talk") as ada, chatting(tea, "bea", "talk") as bea:
        ada.say("Did it arrive?")
        assert ada.until("Did it arrive?")[6:] == "· you: Did it arrive?"
        assert bea.until("Did it arrive?")[6:] == "  ada: Did it arrive?"
        assert ada.until("✓✓").strip() == "✓✓ Did it arrive?: arrived at bea"
        bea.say("//yes")
        assert ada.until("/yes").endswith("bea: /yes")
        ada.say("/members")
        assert {ada.until("●"), ada.until("●")} == {"● you", "● bea"}
        ada.say("/invite")
        assert ada.until("li1").startswith("li1")
        ada.say("/ledger")
        assert "arrived at bea" in ada.until("Did it arrive?")
        ada.say("/dance")
        ada.until("there is no /dance; /help tells what there is")
        ada.say("/help")
        ada.until("/quit")
        ada.say("/quit")
        assert ada.process.wait(LIMIT) == 0
        bea.process.send_signal(signal.SIGINT)
        assert bea.process.wait(LIMIT) == 0
        assert bea.process.stderr is not None
        assert bea.process.stderr.read() == ""


def test_the_end_of_input_says_the_last_words(tea: Tea) -> None:
    said = tea.ada.ok("chat", "tea", "--from", "now", given="one\n\ntwo")
    assert [line[6:] for line in said.splitlines() if "you:" in line] == ["· you: one", "· you: two"]


def test_json_for_programs(tea: Tea) -> None:
    (line,) = tea.ada.ok("chat", "tea", "--from", "now", "--json", given="for programs\n").splitlines()
    assert json.loads(line)["text"] == "for programs"


def test_a_room_that_is_not_there(tea: Tea) -> None:
    assert "there is no room" in tea.ada.fails(2, "chat", "nowhere")


@pytest.mark.parametrize("background", [False, True])
def test_a_node_that_stops_ends_the_conversation(tmp_path: Path, background: bool) -> None:
    """A shell has what it starts in the background ignore SIGINT."""
    with up(tmp_path / "cal") as cal:
        cal.ok("room", "create", "short")
        command = [*LINNET, "chat", "short", "--home", str(cal.home)]
        before = signal.signal(signal.SIGINT, signal.SIG_IGN) if background else None
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if before is not None:
            signal.signal(signal.SIGINT, before)
        assert process.stdout is not None
        assert "founded" in process.stdout.readline()
    with process:
        assert process.wait(LIMIT) == 69


def test_through_a_pipe_there_is_no_prompt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("one\r\ntwo\n\nlast"))
    screen = Screen("tea> ")
    assert list(screen.lines()) == ["one", "two", "", "last"]
    screen.show("hello")
    assert capsys.readouterr().out == "hello\n"


CODE = """
import threading
from linnet.cli.room.chat import Screen
screen = Screen("tea> ")
for line in screen.lines():
    screen.show("heard " + line)
    if line == "quiet":
        threading.Timer(0.3, screen.show, ["from elsewhere"]).start()
screen.show("over")
"""


def test_at_a_terminal_what_comes_in_stands_above_the_line_that_is_typed() -> None:
    main, side = pty.openpty()
    environment = os.environ | {"TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, "-c", CODE], stdin=side, stdout=side, stderr=side, env=environment
    ) as process:
        os.close(side)
        seen = ""

        def until(words: str) -> None:
            nonlocal seen
            while words not in seen:
                seen += os.read(main, 4096).decode()
            seen = seen[seen.index(words) + len(words) :]

        guard = threading.Timer(20, process.kill)
        guard.start()
        until("tea> ")
        os.write(main, b"quiet\n")
        until("heard quiet")
        until("tea> ")
        os.write(main, b"half a li")
        until("half a li")
        until("from elsewhere")
        until("tea> half a li")
        os.write(main, b"ne\n")
        until("heard half a line")
        until("tea> ")
        os.write(main, b"\x04")
        until("over")
        guard.cancel()
        assert process.wait(20) == 0
    os.close(main)
