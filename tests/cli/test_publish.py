from __future__ import annotations

import io
import os
import threading

import pytest
from tests.cli.shell import Linnet

from linnet.cli.exits import Failure
from linnet.cli.publish import BATCH_LINES, line_batches
from linnet.core.limits import BODY_BYTES


def test_a_text_is_published_and_its_outcome_told(running: Linnet) -> None:
    said = running.ok("publish", "kept", "hello")
    assert said.startswith("published le1")
    assert " as number " in said
    assert "sent to   nobody yet" in said


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
