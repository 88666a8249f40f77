"""Rounds: everybody asks for one thing more, and who leaves hears no more."""

from __future__ import annotations

from linnet.content.config import ContentConfig
from linnet.content.predicate import read_attributes, read_predicate
from linnet.sim.content.rounds import (
    LONG_REFRESH,
    STAGES,
    long_rounds,
    replication_rounds,
    run_rounds,
)

NODES, SEED = 20, 3


def test_published_predicates_can_be_read() -> None:
    for asked, said in STAGES:
        assert (len(asked), len(said)) == (6, 5)
        assert all(read_predicate(text) for text in asked)
        assert all(read_attributes(text) for text in said)


def test_one_in_fifteen_publishes() -> None:
    assert [len(each.said) for each in replication_rounds(75, 1)] == [5, 5, 5, 5]


def test_every_stage_brings_everything_to_all_who_asked_so_far() -> None:
    rounds = replication_rounds(NODES, SEED)
    marks: list[int] = []
    reports = run_rounds(NODES, SEED, ContentConfig(), rounds, marks.append)
    assert marks == [1, 2, 3, 4]
    asked: list[tuple[str, str]] = []
    for each, report in zip(rounds, reports, strict=True):
        asked += each.asked
        expected = {
            (name, said.body)
            for said in each.said
            for name, text in asked
            if read_predicate(text).covers(read_attributes(said.attributes))
        }
        assert (report.expected, report.missing, report.unasked) == (len(expected), 0, 0)
        assert sum(report.latencies.values()) == report.expected
        assert sum(report.subscribing.values()) == len(each.asked)
        assert report.messages > 0
    assert reports[3].filters > reports[0].filters


def test_the_same_seed_gives_the_same_reports() -> None:
    runs = [run_rounds(15, 5, ContentConfig(), replication_rounds(15, 5)[:1]) for _ in range(2)]
    assert runs[0] == runs[1]


def test_who_left_hears_no_more_after_the_periods_of_a_filter() -> None:
    rounds = long_rounds(NODES, SEED)
    assert rounds[1].ended
    reports = run_rounds(NODES, SEED, ContentConfig(refresh=LONG_REFRESH), rounds)
    assert [(each.missing, each.unasked) for each in reports] == [(0, 0), (0, 0)]
    assert reports[1].expected < reports[0].expected
    assert reports[1].filters < reports[0].filters
