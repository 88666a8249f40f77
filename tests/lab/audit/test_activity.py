"""Counts of what nodes recorded, against a loop over the rows."""

from __future__ import annotations

from collections import Counter, defaultdict

from pyspark.sql import SparkSession
from tests.lab.audit.stage import Staged
from tests.lab.audit.tales import BEGIN, Tale, Writer, frame_of, us

from linnet.core.ids import PeerId, TopicId
from linnet.lab.audit.activity import holes_of, links_of
from linnet.trace.records import Kind, Record, Row

NODE, OTHER = PeerId(b"n" * 32), PeerId(b"o" * 32)
TOPIC = TopicId(b"t" * 32)


def test_nodes_are_numbered_by_name_and_know_their_starts(staged: Staged, tale: Tale) -> None:
    rows = staged.nodes.orderBy("number").collect()
    assert [bytes(row.node) for row in rows] == sorted({row.node for row in tale.rows})
    for row in rows:
        mine = [each for each in tale.rows if each.node == bytes(row.node)]
        assert (row.rows, row.first_us, row.last_us) == (len(mine), min(map(us, mine)), max(map(us, mine)))
        assert row.epochs == sorted({us(each) for each in mine if each.counter == 0})
        assert row.sessions == sorted({us(each) for each in mine if each.kind == "online"})


def test_everything_is_counted_once(staged: Staged, tale: Tale) -> None:
    wanted: Counter[tuple[bytes, str, bytes | None, str | None]] = Counter()
    for row in tale.rows:
        wanted[row.node, row.kind, row.topic, row.reason] += row.events
    found: Counter[tuple[bytes, str, bytes | None, str | None]] = Counter()
    for sums in staged.activity.collect():
        topic = None if sums.topic is None else bytes(sums.topic)
        found[staged.name(sums.node), sums.kind, topic, sums.reason] += sums.events
    assert found == wanted
    assert sum(row.rows for row in staged.activity.collect()) == len(tale.rows)


def test_a_chain_is_a_device_in_a_topic(staged: Staged, tale: Tale) -> None:
    wanted = {(row.topic, row.device) for row in tale.rows if row.kind in ("published", "delivered")}
    assert set(staged.places.values()) == wanted
    assert sorted(staged.places) == list(range(len(wanted)))


def test_links_count_peers_once(staged: Staged, tale: Tale) -> None:
    ups: dict[bytes, list[bytes | None]] = defaultdict(list)
    for row in tale.rows:
        if row.kind == "link_up":
            ups[row.node].append(row.peer)
    found = {
        staged.name(row.node): (row.ups, row.peers) for row in links_of(staged.signs, staged.nodes).collect()
    }
    assert found == {node: (len(peers), len(set(peers))) for node, peers in ups.items()}


def written() -> list[Row]:
    """Two runs of one node, one of another."""
    writer = Writer()
    for start in (0.0, 100.0):
        writer.start(NODE, BEGIN + start)
        for number in range(9):
            writer.write(NODE, Record(Kind.LINK_UP, peer=OTHER), BEGIN + start + number)
    writer.start(OTHER, BEGIN)
    return writer.rows


def holes(spark: SparkSession, rows: list[Row]) -> dict[bytes, tuple[int, int]]:
    staged = Staged(spark, rows)
    return {staged.name(row.node): (row.holes, row.begins_at) for row in holes_of(staged.activity).collect()}


def test_rows_that_are_missing_are_seen_by_their_counters(spark: SparkSession) -> None:
    rows = written()
    del rows[13:16]  # of the second run
    del rows[0:2]  # the begin of the first: it was rotated away
    assert holes(spark, rows) == {NODE: (3, 2), OTHER: (0, 0)}


def test_counts_of_a_minute_are_no_holes(spark: SparkSession) -> None:
    writer = Writer()
    minute = BEGIN // 60 * 60 + 60
    for start in (30.0, 50.0):
        writer.start(NODE, minute + start)
        writer.write(NODE, Record(Kind.LINK_UP, peer=OTHER), minute + start + 1)
        # Written when the run ends, and dated at the begin of the minute, before either run began.
        writer.write(NODE, Record(Kind.DELIVERED, TOPIC, events=5, note="per_minute"), minute)
    assert holes(spark, writer.rows) == {NODE: (0, 0)}
    activity = Staged(spark, writer.rows).activity
    counted = [(row.rows, row.events) for row in activity.where("note = 'per_minute'").collect()]
    assert sum(rows for rows, _ in counted) == 2
    assert sum(events for _, events in counted) == 10


def test_frames_have_the_schema_of_the_trace(spark: SparkSession) -> None:
    assert frame_of(spark, written()).count() == 21
