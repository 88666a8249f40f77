from __future__ import annotations

import io
import json
import os
import subprocess
import threading

import pytest
from tests.cli.shell import LINNET, Linnet

from linnet.cli.exits import Failure
from linnet.cli.stream.events import BATCH_LINES, Outcome, line_batches
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.limits import BODY_BYTES
from linnet.delivery.receipts import ReceiverFate
from linnet.streams.commands import Published


def test_a_text_is_published_and_its_outcome_told(running: Linnet) -> None:
    said = running.ok("publish", "kept", "hello")
    assert said.startswith("published le1")
    assert " as number " in said
    assert "sent to   nobody else yet" in said
    assert "delivered storage node" in said


def test_what_is_delivered_is_not_said_to_have_reached_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = Outcome(as_json=False)
    fate = ReceiverFate(PeerId(bytes(32)), True, 1.0)
    outcome.add(Published(TopicId(bytes(32)), 0, (EventId(bytes(32)),), 0, (fate,)))
    outcome.end(0.0)
    said = capsys.readouterr().out
    assert "delivered storage node" in said
    assert "nobody else yet" in said
    assert "nobody yet" not in said


def test_lines_from_a_pipe_are_messages(running: Linnet) -> None:
    reply = running.json("publish", "lines", "-", "--lines", given="one\ntwo\r\nthree\n")
    assert len(reply["ids"]) == 3
    assert reply["first"] == 0
    said = running.ok("publish", "lines", "--lines", given="four\nfive\n")
    assert said.startswith("published 2 events, numbers 3 to 4")


def test_all_of_standard_input_is_one_message(running: Linnet) -> None:
    assert len(running.json("publish", "whole", given=b"\x00\xff\n\n")["ids"]) == 1
    assert "standard input was empty" in running.ok("publish", "whole", given="")


def test_wrong_input_is_told_in_a_line(running: Linnet) -> None:
    assert "give - instead" in running.fails(2, "publish", "kept", "text", "--lines")
    assert "cannot name a stream" in running.fails(2, "publish", " blank", "text")
    assert "too_large" in running.fails(1, "publish", "kept", given=b"x" * (BODY_BYTES + 1))
    running.fails(2, "publish", "kept", "text", "--confirm", "-1")
    running.fails(2, "publish")


def test_who_may_not_publish_is_told_why(running: Linnet) -> None:
    stranger = Linnet(running.home.parent / "stranger")
    person = stranger.json("init")["person"]
    said = running.fails(1, "publish", f"{person}/diary", "let me in")
    assert "not_a_publisher" in said
    assert "the stream's owner decides" in said


def test_without_a_node_it_says_how_to_start_one(shell: Linnet) -> None:
    shell.ok("init")
    assert "start one with: linnet up" in shell.fails(69, "publish", "kept", "hello")


def test_without_a_storage_node_confirming_fails(running: Linnet) -> None:
    said = running.fails(1, "publish", "unkept", "hello", "--confirm", "0.1")
    assert "no storage node confirmed 1 of 1 event: none is known" in said


def test_a_burst_is_the_largest_batch() -> None:
    batches = list(line_batches(io.BytesIO(b"x\n" * 600)))
    assert [len(batch) for batch in batches] == [BATCH_LINES, BATCH_LINES, 600 - 2 * BATCH_LINES]


def test_a_line_of_a_slow_writer_does_not_wait_for_company() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source:
        batches = line_batches(source)
        threading.Thread(target=os.write, args=(writing, b"first\n")).start()
        assert next(batches) == [b"first"]
        os.write(writing, b"second\nthi")
        assert next(batches) == [b"second"]
        os.write(writing, b"rd")
        os.close(writing)
        assert list(batches) == [[b"third"]]


def test_a_line_without_an_end_is_given_up() -> None:
    with pytest.raises(Failure, match="split it"):
        list(line_batches(io.BytesIO(b"x" * (2 * BODY_BYTES))))


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


def test_wrong_input_to_subscribe_is_told_in_a_line(running: Linnet, shell: Linnet) -> None:
    assert "is no time" in running.fails(2, "subscribe", "kept", "--from", "yesterday")
    running.fails(2, "subscribe", "kept", "--count", "0")
    assert "start one with: linnet up" in shell.fails(69, "subscribe", "kept")
    assert "nobody is me" in shell.fails(78, "subscribe", "me/log")


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
