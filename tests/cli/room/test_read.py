from __future__ import annotations

import json
import subprocess

from tests.cli.conftest import LINNET
from tests.cli.village import Tea


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
