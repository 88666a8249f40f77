"""What is told of an audit is what its tables hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.lab.audit.tales import NEVER as NEVER_CAME
from tests.lab.audit.tales import Oracle, Tale

from linnet.core.quantiles import quantile, within_ms
from linnet.lab.audit.audit import Audited
from linnet.lab.audit.findings import Sums
from linnet.lab.bins import NEVER, total


def merged(sums: Iterable[Sums]) -> Counter[int]:
    """The delays of several together."""
    found = Counter[int]()
    for each in sums:
        found.update(each.bins)
    return found


def test_totals_are_over_all_topics(audited: tuple[Audited, Path], oracle: Oracle) -> None:
    """Not over those that are told alone, of which there may be fewer."""
    findings = audited[0].findings
    for name in ("owed", "delivered", "lost", "explained", "duplicates", "repeated"):
        assert findings.total(name) == sum(getattr(topic, name) for topic in findings.topics)
    assert findings.total("published") == len(oracle.published)
    assert findings.bins == merged(findings.topics)


def test_topics_are_the_sums_of_their_readers(audited: tuple[Audited, Path], oracle: Oracle) -> None:
    findings = audited[0].findings
    assert findings.topic_count == len(findings.topics) == 2
    assert findings.reader_count == len(findings.readers) == len(oracle.readers())
    for topic in findings.topics:
        mine = [reader for reader in findings.readers if reader.topic == topic.topic]
        assert topic.readers == len(mine)
        for name in ("owed", "delivered", "lost", "explained", "duplicates", "repeated"):
            assert getattr(topic, name) == sum(getattr(reader, name) for reader in mine)
        assert topic.bins == merged(mine)
        assert total(topic.bins) == topic.owed
        assert topic.bins.get(NEVER, 0) == topic.owed - topic.delivered
        events = [event for event in oracle.published if event[0].hex() == topic.topic]
        assert topic.published == len(events)


def test_latency_is_that_of_every_delivery(audited: tuple[Audited, Path], oracle: Oracle) -> None:
    findings, delays = audited[0].findings, oracle.delays()
    told = {(each.topic, each.receiver or ""): each.latency for each in (*findings.topics, *findings.readers)}
    told["", ""] = findings.latency
    owed = {whose: found for whose, found in told.items() if whose in delays}
    assert set(owed) == set(delays)
    for whose, latency in owed.items():
        came = [us for us in delays[whose] if us != NEVER_CAME]
        for percent, ms in ((50, latency.p50), (90, latency.p90), (95, latency.p95), (99, latency.p99)):
            exact = quantile(delays[whose], percent / 100)
            assert exact is not None
            assert ms == (None if exact == NEVER_CAME else within_ms(exact))
        assert latency.most == (within_ms(came[-1]) if came else None)
        assert latency.mean == (pytest.approx(sum(came) / len(came) / 1000) if came else None)


def test_losses_are_the_first_by_time(audited: tuple[Audited, Path], oracle: Oracle) -> None:
    lost = [
        (oracle.published[event][1], event[0].hex(), event[1].hex(), event[2], node.hex())
        for (event, node), fate in oracle.missing().items()
        if fate == "lost"
    ]
    found = [(x.published_us, x.topic, x.device, x.seq, x.receiver) for x in audited[0].findings.lost]
    assert found == sorted(lost)[: len(found)]
    assert found


def test_nodes_and_what_went_wrong(audited: tuple[Audited, Path], tale: Tale) -> None:
    findings = audited[0].findings
    assert findings.rows == len(tale.rows)
    assert findings.node_count == 5
    assert sum(node.holes for node in findings.nodes) == findings.holes
    assert sum(node.crashes for node in findings.nodes) == findings.crashes
    wrong: Counter[tuple[str, str]] = Counter()
    for row in tale.rows:
        if row.kind in ("rejected", "dropped", "expired", "evicted"):
            wrong[row.kind, row.reason or ""] += row.events
    assert {(each.kind, each.reason): each.events for each in findings.wrong} == wrong
    filled = sum(row.note == "gap filled" for row in tale.rows)
    assert [each.rows for each in findings.mended if each.note == "gap filled"] == [filled]


def test_clocks_that_differ_are_told_by_pair(audited: tuple[Audited, Path], oracle: Oracle) -> None:
    least: dict[tuple[str, str], int] = {}
    for (event, node), came in oracle.arrivals.items():
        if event in oracle.published:
            author, published, _ = oracle.published[event]
            delay = min(time for time, _ in came) - published
            pair = (author.hex(), node.hex())
            least[pair] = min(delay, least.get(pair, 0))
    wanted = {pair: delay for pair, delay in least.items() if delay < -10_000}
    found = {(skew.author, skew.receiver): skew.least_us for skew in audited[0].findings.skews}
    assert found == wanted
    assert audited[0].findings.skew_count == len(wanted)
