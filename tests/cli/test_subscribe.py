from __future__ import annotations

import json
import subprocess

from tests.cli.conftest import LINNET
from tests.cli.shell import Linnet


def test_from_the_beginning_as_many_as_asked_for(running: Linnet) -> None:
    running.ok("publish", "sub", "--lines", given="a\nb\nc\n")
    running.ok("up", "--help")
    said = running.ok("subscribe", "sub", "--name", "reader", "--from", "beginning", "--count", "2")
    assert said == "a\nb\n"
    said = running.ok("subscribe", "sub", "--name", "reader", "--count", "1")
    assert said == "c\n", "a durable subscription goes on behind what was printed"


def test_json_lines_say_who_and_when(running: Linnet) -> None:
    person = running.json("status")["person"]
    running.ok("publish", "kept", "für alle")
    line = running.ok("subscribe", "kept", "--from", "beginning", "--count", "1", "--json")
    event = json.loads(line)
    assert event["author"] == person
    assert event["id"].startswith("le1")
    assert {"seq", "time", "body", "text"} <= set(event)


def test_what_comes_while_it_runs_is_printed_at_once(running: Linnet) -> None:
    command = [*LINNET, "subscribe", "live", "--count", "2", "--home", str(running.home), "--unordered"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while not any(each["stream"] == "live" for each in running.json("status")["streams"]):
            assert process.poll() is None
        running.ok("publish", "live", "one")
        assert process.stdout.readline() == "one\n"
        running.ok("publish", "live", "two")
        assert process.communicate(timeout=20)[0] == "two\n"
    assert process.returncode == 0


def test_a_time_limit_ends_it(running: Linnet) -> None:
    said = running.fails(1, "subscribe", "silent", "--count", "1", "--timeout", "0.2")
    assert "0 of 1 event came in 0.2 s" in said
    assert running.ok("subscribe", "silent", "--timeout", "0.2") == ""


def test_a_closed_pipe_ends_it_quietly(running: Linnet) -> None:
    running.ok("publish", "kept", "--lines", given="x\n" * 2000)
    command = [*LINNET, "subscribe", "kept", "--from", "beginning", "--home", str(running.home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(2)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(20) == 0


def test_wrong_input_is_told_in_a_line(running: Linnet, shell: Linnet) -> None:
    assert "is no time" in running.fails(2, "subscribe", "kept", "--from", "yesterday")
    running.fails(2, "subscribe", "kept", "--count", "0")
    assert "start one with: linnet up" in shell.fails(69, "subscribe", "kept")
    assert "nobody is me" in shell.fails(78, "subscribe", "me/log")
