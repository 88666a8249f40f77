"""The measurements of matching run, and compare the same."""

from __future__ import annotations

from pathlib import Path

from bench.results import Plan

from bench import content
from linnet.content.predicate import read_attributes


def test_index_scan_and_memory_are_measured(tmp_path: Path) -> None:
    found = content.measure(Plan(1, 0.001, True, tmp_path))
    assert [each.name for each in found] == [
        "10, index",
        "10, scan",
        "10, one out and in",
        "1,000, index",
        "1,000, scan",
        "1,000, one out and in",
        "index, for each predicate",
    ]
    assert all((each.median or 0) > 0 for each in found)


def test_ten_accept_the_event_however_many_there_are() -> None:
    event = read_attributes(content.EVENT)
    for count in (10, 300):
        kept = content.predicates(count)
        assert len(set(kept)) == count
        assert content.scan(kept, event) == list(range(content.ACCEPTING))
