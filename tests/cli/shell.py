"""Typing commands in a test."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from typer.testing import CliRunner, Result

from linnet.cli.app import app

LINNET = (sys.executable, "-m", "linnet.cli")
COMMANDS_WITHOUT_HOME = ("sim", "demo", "play", "--version", "--help")


class Linnet:
    """The command line with a home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.address = ""

    def run(self, *words: str, given: str | bytes | None = None) -> Result:
        """Type a command; a traceback fails the test."""
        home = () if words[0] in COMMANDS_WITHOUT_HOME else ("--home", str(self.home))
        result = CliRunner().invoke(app, [*words, *home], input=given)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def ok(self, *words: str, given: str | bytes | None = None) -> str:
        """What it prints, if it ends well."""
        result = self.run(*words, given=given)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *words: str, given: str | bytes | None = None) -> Any:  # noqa: ANN401 - JSON is
        """The value that it prints, if it ends well."""
        return json.loads(self.ok(*words, "--json", given=given))

    def fails(self, status: int, *words: str, given: str | bytes | None = None) -> str:
        """What it says on standard error, in one line, with this status."""
        result = self.run(*words, given=given)
        assert result.exit_code == status, result.output
        assert "Traceback" not in result.stderr
        return result.stderr.strip()

    @contextlib.contextmanager
    def up(self, *options: str) -> Iterator[Self]:
        """The node of the home, in a process of its own."""
        command = [*LINNET, "up", "--home", str(self.home), "--json", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            self.address = json.loads(process.stdout.readline())["address"]
            try:
                yield self
            finally:
                process.terminate()
                assert process.wait(20) == 0

    def at_terminal(self, *words: str) -> bytes:
        """What a command in a process of its own writes to a terminal."""
        leader, follower = pty.openpty()
        command = [*LINNET, *words, "--home", str(self.home)]
        written = b""
        with subprocess.Popen(command, stdout=follower, stderr=follower, stdin=follower) as process:
            os.close(follower)
            # A terminal that nobody writes to any more is read with an error.
            with contextlib.suppress(OSError):
                while some := os.read(leader, 65_536):
                    written += some
            assert process.wait(20) in (0, 1)
        os.close(leader)
        return written.replace(b"\r\n", b"\n")
