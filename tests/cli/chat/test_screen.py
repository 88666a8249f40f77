from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import threading

import pytest

from linnet.cli.chat.screen import Screen


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
from linnet.cli.chat.screen import Screen
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
