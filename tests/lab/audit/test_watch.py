"""A watch that is killed and started again has seen the same as one that was not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tests.lab.audit.homes import line_of, write_lines
from tests.lab.audit.tales import BEGIN, Writer

from linnet.core.ids import DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.lab.audit.watch import Watch
from linnet.lab.audit.watch_view import View
from linnet.lab.errors import LabError
from linnet.lab.stages import schema_of
from linnet.lab.tables import QUARANTINE
from linnet.trace.records import Kind, Record, Row

NODES = [PeerId(bytes([number]) * 32) for number in (1, 2, 3)]
TOPIC, DEVICE = TopicId(b"t" * 32), DeviceId(b"d" * 8)
EVENTS = 30
LATENESS_MS = 5_000


def story() -> list[Row]:
    """One publishes, two read; every tenth event is lost at the third, and one more is dropped there."""
    writer = Writer()
    for node in NODES:
        writer.start(node, BEGIN)
    for node in NODES[1:]:
        writer.write(node, Record(Kind.CONTROL, TOPIC, note="subscribed"), BEGIN)
    for number in range(EVENTS):
        time = BEGIN + 1 + number
        event = (TOPIC, EventId(bytes([number]) * 32), DEVICE, number)
        writer.write(NODES[0], Record(Kind.PUBLISHED, *event), time)
        writer.write(NODES[1], Record(Kind.DELIVERED, *event, hops=1), time + 0.02)
        writer.write(NODES[1], Record(Kind.DUPLICATE, TOPIC, None, DEVICE, number), time + 0.03)
        if number == 15:
            writer.write(NODES[2], Record(Kind.DROPPED, *event, reason=Reason.QUEUE_FULL), time)
        elif number % 10:
            writer.write(NODES[2], Record(Kind.DELIVERED, *event, hops=2), time + 0.3)
    for node in NODES:
        writer.write(node, Record(Kind.OFFLINE), BEGIN + 100)
    return writer.rows


class Site:
    """Homes that grow, and watches over them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder

    def grow(self, rows: list[Row]) -> None:
        for node in NODES:
            self.append(node, *(line_of(row) for row in rows if row.node == node))

    def append(self, node: PeerId, *lines: str) -> None:
        path = self.folder / node.hex()[:4] / "trace" / "trace.jsonl"
        if not path.exists():
            write_lines(path, [])
        with path.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def watch(self, name: str, killed: Callable[[int], None] | None = None) -> View:
        watch = Watch(self.spark, self.folder, self.folder / name, LATENESS_MS)
        if killed is not None:
            watch.after_state = killed
        watch.tailer.cut_all()
        query = watch.start(once=True)
        query.awaitTermination()
        return watch.look()


class Killed(Exception):
    pass


def kill(batch: int) -> None:
    raise Killed(batch)


@pytest.fixture
def site(spark: SparkSession, tmp_path: Path) -> Site:
    return Site(spark, tmp_path)


def test_totals_are_the_same_however_often_it_was_killed(site: Site) -> None:
    rows = story()
    site.grow(rows[:60])
    with pytest.raises(StreamingQueryException, match="Killed"):
        site.watch(".often", kill)  # its state stands, and Spark does not know that it is done
    site.grow(rows[60:])
    often = site.watch(".often")
    once = site.watch(".once")
    assert replace(often, watermark_us=0) == replace(once, watermark_us=0)
    (topic,) = once.topics
    assert (topic.readers, topic.published, topic.delivered, topic.missing) == (2, 30, 56, 4)
    assert (topic.duplicates, topic.open, topic.p50_ms) == (30, 0, 20)
    assert once.wrong == {"dropped queue_full": 1}
    assert (once.rows, once.late, once.bad, once.node_count) == (len(rows), 0, 0, 3)
    assert not any(node.is_up for node in once.nodes)
    assert site.watch(".once") == once, "what was seen is known without reading it again"


def test_lines_that_come_too_late_are_counted_and_change_nothing(site: Site) -> None:
    rows = story()
    late = [row for row in rows if row.node == NODES[2] and row.kind == "delivered" and row.seq == 5]
    site.grow([row for row in rows if row not in late])
    before = site.watch(".watch")
    site.grow(late)
    site.append(NODES[0], "damaged")
    after = site.watch(".watch")
    assert (before.late, before.topics[0].missing) == (0, 5)
    assert (after.late, after.bad, after.topics) == (1, 1, before.topics)
    assert after.rows == before.rows + 1
    bad = site.spark.read.schema(schema_of(QUARANTINE)).parquet(
        str(site.folder / ".watch" / "quarantine" / "*")
    )
    (row,) = bad.collect()
    assert (row.file.endswith("0101/trace/trace.jsonl"), row.content) == (True, "damaged")


def test_a_folder_that_is_not_there_is_told(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no folder"):
        Watch(spark, tmp_path / "none", tmp_path / "out")
