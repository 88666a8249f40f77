"""An audit of the files of five nodes, from files to report."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession
from tests.lab.audit.homes import Homes, line_of, write_lines
from tests.lab.audit.tales import BEGIN, Oracle, Tale, Writer

from linnet.cli.demo.story import publication_times, tally
from linnet.core.ids import DeviceId, EventId, PeerId, TopicId
from linnet.lab.audit.audit import Audited, audit
from linnet.lab.audit.fates import NOT_OWED, Fate
from linnet.lab.audit.labels import short
from linnet.lab.audit.pipeline import Parameters
from linnet.lab.audit.report import report_of
from linnet.lab.errors import LabError
from linnet.lab.stages import Workshop
from linnet.trace.jsonlines import FILE_NAME
from linnet.trace.records import Kind, Record


def test_the_summary_says_what_became_of_every_event(
    audited: tuple[Audited, Path], oracle: Oracle, tale: Tale
) -> None:
    found = {figure["id"]: figure["measured"] for figure in summary(audited[1])["figures"]}
    fates = list(oracle.missing().values())
    begins = {key: begin for key, (begin, *_) in oracle.readers().items()}
    owed = [
        node
        for event, node in oracle.arrivals
        if event in oracle.published and oracle.published[event][1] >= begins[event[0], node]
    ]
    assert found["rows"] == len(tale.rows)
    assert found["published"] == len(oracle.published)
    assert found["delivered"] == len(owed)
    for fate in ("stored", "explained", "pending", "cut", "lost"):
        assert found[fate] == fates.count(fate)
    assert found["owed"] == len(owed) + sum(fate not in NOT_OWED for fate in fates)
    assert found["completeness"] == len(owed) / found["owed"]


def summary(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return found


def test_the_demo_and_an_audit_tell_the_same_of_one_run(spark: SparkSession, tmp_path: Path) -> None:
    author, reader = PeerId(b"a" * 32), PeerId(b"r" * 32)
    topic, device, luck, writer = TopicId(b"t" * 32), DeviceId(b"d" * 8), Random(3), Writer()
    for node in (author, reader):
        writer.start(node, BEGIN)
    writer.write(reader, Record(Kind.CONTROL, topic, note="subscribed"), BEGIN + 1)
    for number in range(199):
        place = (topic, EventId(bytes([number]) * 32), device, number)
        writer.write(author, Record(Kind.PUBLISHED, *place), BEGIN + 2 + number)
        took = luck.choice((-0.001, 0.00043, 0.0621, 0.5127, 1.2345678)) + luck.random() / 100
        writer.write(reader, Record(Kind.DELIVERED, *place), BEGIN + 2 + number + took)
    run = tmp_path / "run"
    for node, name in ((author, "author"), (reader, "reader")):
        lines = [line_of(row) for row in writer.rows if row.node == node]
        write_lines(run / name / "trace" / FILE_NAME, lines)
    demo = tally("reader", run / "reader", {}, publication_times([run / "author"]))
    findings = audit(Workshop(spark, tmp_path / "out"), [run], Parameters()).findings
    (found,) = findings.readers
    assert found.delivered == found.owed == 199
    assert (found.latency.p50, found.latency.p99) == (demo.p50_ms, demo.p99_ms)
    assert (findings.latency.p50, findings.latency.p99) == (demo.p50_ms, demo.p99_ms)
    assert found.latency.p50 not in (None, 0, found.latency.p99)
    figures = {each["id"]: each["measured"] for each in summary(tmp_path / "out")["figures"]}
    told = ("mean", "p50", "p90", "p95", "p99", "max")
    assert all(figures[f"latency.{name}"] > 0 for name in told)
    assert figures["latency.p95"] <= figures["latency.max"]


def test_what_was_lost_fails_it_with_an_example(
    audited: tuple[Audited, Path], homes: Homes, oracle: Oracle
) -> None:
    report = audited[0].report
    assert not report.ok
    (check,) = report.failures()
    lost = [pair for pair, fate in oracle.missing().items() if fate == Fate.LOST]
    first = min(oracle.published[event][1] for event, _ in lost)
    assert check.detail in {
        f"{homes.names[node.hex()]} never got event {seq} of device {device.hex()} in topic "
        f"{short(topic.hex())}, published at {first / 1e6:.6f}"
        for (topic, device, seq), node in lost
        if oracle.published[topic, device, seq][1] == first
    }


@pytest.mark.parametrize(("lost", "passes"), [(0, True), (1, False)])
def test_one_loss_is_enough_to_fail_it(audited: tuple[Audited, Path], lost: int, passes: bool) -> None:
    found = audited[0].findings
    findings = replace(found, totals={**found.totals, "lost": lost})
    assert report_of(findings, audited[0].labels, Parameters(), {}, ()).ok is passes


def test_bad_lines_are_counted_by_reason(audited: tuple[Audited, Path]) -> None:
    wanted = {"node is no hex": 1, "no JSON of this schema": 1}
    assert audited[0].quarantined == wanted
    assert summary(audited[1])["quarantined"] == wanted
    assert any("2 lines could not be used" in line for line in audited[0].report.abstract)


def test_the_second_time_nothing_is_done(
    spark: SparkSession, audited: tuple[Audited, Path], homes: Homes
) -> None:
    told: list[str] = []
    again = audit(Workshop(spark, audited[1], told.append), [homes.folder], Parameters())
    assert told == []
    assert again.findings == audited[0].findings


def test_a_trace_without_rows_is_told(spark: SparkSession, tmp_path: Path) -> None:
    write_lines(tmp_path / "home" / "trace.jsonl", [])
    with pytest.raises(LabError, match="no rows"):
        audit(Workshop(spark, tmp_path / "out"), [tmp_path / "home"], Parameters())
