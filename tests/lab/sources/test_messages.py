"""Messages of a source become tables that say nobody's name."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from linnet.lab.errors import LabError
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.messages import EXCLUDED, ingest_messages, prepare
from linnet.lab.sources.names import names_of
from linnet.lab.stages import Workshop, open_table
from linnet.lab.tables import MESSAGES, QUARANTINE, TEXTS

HEADER = "ts,stream_id,topic,user,chars\n"
NAMES = names_of("salt")


def write_rows(path: Path, seed: int) -> list[tuple[str, int, str, int]]:
    """A packed file of random messages, three of them bad; what must come of it."""
    draw = random.Random(seed)
    rows = []
    lines = [HEADER, "no\n", "5,1,1,1,1\n", "\n", "1500000000,1,1,1,x\n"]
    for _ in range(200):
        ts, topic, user, chars = 1_500_000_000 + draw.randrange(5000), draw.randrange(9), draw.randrange(6), 7
        lines.append(f"{ts},1,{topic},{user},{chars}\n")
        if user != 0:
            rows.append((f"1/{topic}", ts * 1000, NAMES.user(str(user)), chars))
    path.write_bytes(gzip.compress("".join(lines).encode()))
    return rows


def test_messages_are_sorted_within_their_chat(spark: SparkSession, tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.csv.gz" for number in range(3)]
    expected = [row for number, path in enumerate(files) for row in write_rows(path, number)]
    source = prepare("zulip", files, Choices(excluded=frozenset({"0"})))
    counts = ingest_messages(Workshop(spark, tmp_path / "out"), source, NAMES)
    rows = open_table(spark, tmp_path / "out" / "messages", MESSAGES).frame.collect()
    assert sorted((row.chat, row.ts, row.user, row.chars) for row in rows) == sorted(expected)
    assert {(row.kind, row.granularity) for row in rows} == {("text", "s")}
    for chat in {row.chat for row in rows}:
        times = [row.ts for row in rows if row.chat == chat]
        assert times == sorted(times)
    assert (counts.messages, counts.chats, counts.users) == (len(expected), 9, 5)
    assert counts.quarantined[EXCLUDED] == 600 - len(expected)
    assert sum(counts.quarantined.values()) == 600 - len(expected) + 9


def test_bad_rows_are_found_again_by_file_and_line(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.csv.gz", 1)
    for keep in (False, True):
        source = prepare("zulip", [tmp_path / "a.csv.gz"], Choices(keep_text=keep))
        ingest_messages(Workshop(spark, tmp_path / "out"), source, NAMES)
        rows = open_table(spark, tmp_path / "out" / "quarantine", QUARANTINE).frame.collect()
        assert sorted((row.source, row.file, row.line) for row in rows) == [
            ("zulip", "a.csv.gz", 2),
            ("zulip", "a.csv.gz", 3),
            ("zulip", "a.csv.gz", 5),
        ]
        assert {row.content for row in rows} == ({"no", "5,1,1,1,1", "1500000000,1,1,1,x"} if keep else {""})


def test_the_same_source_is_not_read_twice(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.csv.gz", 1)
    source = prepare("zulip", [tmp_path / "a.csv.gz"], Choices())
    first = ingest_messages(Workshop(spark, tmp_path / "out"), source, NAMES)
    again = Workshop(spark, tmp_path / "out")
    assert ingest_messages(again, source, NAMES) == first
    assert all(cost.reused for cost in again.costs)
    other = Workshop(spark, tmp_path / "out")
    ingest_messages(other, source, names_of("another salt"))
    assert not any(cost.reused for cost in other.costs)


def test_a_source_of_bad_rows_is_an_error_that_says_why(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(HEADER + "1500000000,1,1,1,x\n")
    source = prepare("zulip", [path], Choices())
    with pytest.raises(LabError, match=r"no message could be used: chars is no count \(1\)"):
        ingest_messages(Workshop(spark, tmp_path / "out"), source, NAMES)


def test_text_with_half_a_character_is_kept_without_it(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "room.json"
    event = '{"type": "m.room.message", "sender": "@a:x", "origin_server_ts": 1704110400123, "content": %s}'
    events = [event % '{"body": "caf\\u00e9 \\ud83d"}', event % "7"]
    path.write_text(f'{{"messages": [{", ".join(events)}]}}')
    source = prepare("element", [path], Choices(keep_text=True))
    counts = ingest_messages(Workshop(spark, tmp_path / "out"), source, NAMES)
    [row] = open_table(spark, tmp_path / "out" / "texts", TEXTS).frame.collect()
    assert (row.text, row.chars, row.user) == ("café ?", 6, NAMES.user("@a:x"))
    assert counts.quarantined == {"it is no event of Matrix": 1}
