"""What became of what was not delivered, against a judge that looks at every event and every reader."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.lab.audit.stage import Staged
from tests.lab.audit.tales import BEGIN, GRACE_US, Oracle, Tale, Writer

from linnet.core.ids import DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.lab.audit.fates import Fate
from linnet.trace.records import Kind, Record

AUTHOR, READER = PeerId(b"a" * 32), PeerId(b"r" * 32)
TOPIC, DEVICE = TopicId(b"t" * 32), DeviceId(b"d" * 8)


def found_in(staged: Staged) -> dict[object, str]:
    rows = staged.missing(GRACE_US).collect()
    return {
        ((bytes(row.topic), bytes(row.device), row.seq), staged.name(row.receiver)): row.fate for row in rows
    }


def test_fates_are_those_of_a_judge_who_looks_at_every_pair(staged: Staged, oracle: Oracle) -> None:
    wanted = oracle.missing()
    assert found_in(staged) == wanted
    assert set(wanted.values()) >= {Fate.LOST, Fate.EXPLAINED, Fate.STORED, Fate.AWAY, Fate.CUT, Fate.PENDING}


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_the_same_of_many_traces(spark: SparkSession, seed: int) -> None:
    tale = Tale(seed, steps=150)
    assert found_in(Staged(spark, tale.rows)) == Oracle(tale.rows).missing()


def test_a_reader_that_was_cut_off_for_being_slow_has_a_record_of_it(spark: SparkSession) -> None:
    writer = Writer()
    for node in (AUTHOR, READER):
        writer.start(node, BEGIN)
    writer.write(READER, Record(Kind.CONTROL, TOPIC, note="subscribed"), BEGIN + 1)
    for number in range(40):
        time = BEGIN + 2 + number
        event = (TOPIC, EventId(bytes([number]) * 32), DEVICE, number)
        writer.write(AUTHOR, Record(Kind.PUBLISHED, *event), time)
        if number < 5:
            writer.write(READER, Record(Kind.DELIVERED, *event), time + 0.1)
    slow = Record(Kind.DROPPED, TOPIC, reason=Reason.SUBSCRIBER_SLOW)
    writer.write(READER, slow, BEGIN + 20)
    writer.write(READER, Record(Kind.OFFLINE), BEGIN + 100)
    found = [
        (row.seq, row.fate, row.reason) for row in Staged(spark, writer.rows).missing(GRACE_US).collect()
    ]
    assert sorted(found) == [
        *((number, "lost", None) for number in range(5, 8)),
        *((number, "explained", "subscriber_slow") for number in range(8, 40)),
    ]


@pytest.mark.parametrize(
    ("first", "last"),
    [("subscribed", "unsubscribed"), ("subscribed, durable", "unsubscribed"), ("joined", "left")],
)
def test_what_was_said_before_a_reader_took_part_or_after_it_left_is_not_owed(
    spark: SparkSession, first: str, last: str
) -> None:
    writer = Writer()
    for node in (AUTHOR, READER):
        writer.start(node, BEGIN)
    writer.write(READER, Record(Kind.CONTROL, TOPIC, note=first), BEGIN + 10)
    for number in range(5):
        event = (TOPIC, EventId(bytes([number]) * 32), DEVICE, number)
        writer.write(AUTHOR, Record(Kind.PUBLISHED, *event), BEGIN + 5 + 4 * number)
        if number == 2:
            writer.write(READER, Record(Kind.DELIVERED, *event), BEGIN + 14)
    writer.write(READER, Record(Kind.CONTROL, TOPIC, note=last), BEGIN + 20)
    writer.write(READER, Record(Kind.OFFLINE), BEGIN + 100)
    found = [(row.seq, row.fate) for row in Staged(spark, writer.rows).missing(1_000_000).collect()]
    assert sorted(found) == [(0, "before"), (1, "before"), (3, "lost"), (4, "after")]
