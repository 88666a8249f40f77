"""A conversation of two processes through pipes."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.conftest import LINNET
from tests.cli.village import Tea, up

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
