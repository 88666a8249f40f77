from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from random import Random

import pytest

from linnet.sim.nemesis.course import WAYS, coverage_of, run_course
from linnet.sim.nemesis.faults import Fault, draw_plan
from linnet.trace.columns import ColumnTrace

IS_SOAK = bool(os.environ.get("LINNET_SOAK"))
SEEDS = range(1, 201) if IS_SOAK else range(1, 6)


FOUND = [
    (
        "streams",
        18,
        "a live reader who came late lost events in silence; later, what was held was pushed for ever",
    ),
    ("streams", 30, "a durable subscription from now on was handed history"),
    ("streams", 152, "a publisher whose clock was set made others take its events for hours old"),
    ("streams", 172, "who joined before the others were back at the tracker stayed alone"),
    ("streams", 302, "crashes made a node forget its dials, and it dialled eleven times in a minute"),
    ("streams", 180, "a tracker that refused to start over a damaged value was never started again"),
    ("rooms", 2, "a damaged control event ended a relay"),
    ("rooms", 3, "who left right after a start, with nobody in reach yet, was a member for ever"),
    ("rooms", 9, "a revoked device made an accomplice powerful by a false time"),
    ("rooms", 22, "a relay asked three members 12 times a second, for ever, for an event that it refused"),
    ("rooms", 29, "a clock that was behind hid messages for good"),
    ("rooms", 79, "what was said with a fast clock was hidden from the others for as long as that was ahead"),
    ("rooms", 82, "the same, of the founder"),
    ("rooms", 80, "who was put out showed newcomers the room, and then refused their joins"),
    ("rooms", 187, "a node with a full disk dialled anew in each life, and could not keep that it did"),
    ("rooms", 408, "what failed by a ban stayed hidden when the revocation of who banned undid the ban"),
    (
        "rooms",
        512,
        "newcomers were shown what a revoked device said, since the revocation lacked causes",
    ),
    ("rooms", 625, "a relay that refused a revoked device was asked four times a minute, for ever"),
    ("places", 8, "a host that was gone was dialled without end"),
    ("places", 25, "a clock that was put back made every wait last hours"),
    ("places", 38, "all objects of a place vanished everywhere alike"),
    ("places", 62, "who waited at the host's door asked every guest three times a minute, for ever"),
    ("places", 74, "a co-host cut its line, was then refused its term, and never told its readers"),
    (
        "places",
        99,
        "word that the host is away went round among three guests for ever; later, a voice asked a keeper "
        "every five seconds, for ever, that sent it on to those below it",
    ),
    ("places", 117, "the same, with the circle the other way round"),
    ("places", 130, "a word that waited for its turn was overtaken by the next one of its speaker"),
    ("places", 159, "the same as streams 180, of a co-host"),
    ("places", 164, "a host with a full disk dialled a dead keeper anew in each life"),
    ("places", 195, "the same, of a host whose commits failed right after the dial"),
    ("content", 15, "nobody served a subscription once all others had restarted"),
    ("content", 51, "a clock that was put back made every peer a flooder"),
]
"""Seeds that failed once, and what they found."""


@pytest.mark.parametrize(("way", "seed", "found"), FOUND, ids=[f"{way}-{seed}" for way, seed, _ in FOUND])
def test_what_was_found_once_does_not_come_back(way: str, seed: int, found: str) -> None:
    assert run_course(way, seed).complaints == (), found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_promise_is_kept_in_the_open_world(way: str, seed: int) -> None:
    report = run_course(way, seed)
    assert report.complaints == (), report.faults


@pytest.mark.parametrize("way", WAYS)
def test_equal_seeds_give_equal_runs_in_another_process_too(way: str) -> None:
    code = (
        "from linnet.sim.nemesis.course import run_course\n"
        f"report = run_course({way!r}, 2)\nprint(report.trace_sha256, report.spent)"
    )
    environment = dict(os.environ, PYTHONHASHSEED="12345")
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    ours = run_course(way, 2)
    assert other.stdout.strip() == f"{ours.trace_sha256} {ours.spent}"
    assert ours.trace_sha256 != run_course(way, 3).trace_sha256


@pytest.mark.parametrize("way", WAYS)
def test_every_fault_strikes_every_way(way: str) -> None:
    struck: Counter[Fault] = Counter()
    for seed in range(1, 31):
        cast = WAYS[way](seed, ColumnTrace()).cast
        struck.update(strike.fault for strike in draw_plan(Random(seed), cast, tuple(Fault), 0.0, 1.0))
    assert struck.keys() == set(Fault)


def test_what_struck_is_counted_and_what_did_not_is_0() -> None:
    report = run_course("streams", 1, (Fault.KILL, Fault.PAUSE, Fault.LOSS))
    struck = coverage_of([report, report])
    assert {name: count for name, count in struck.items() if count} == {"KILL": 2, "PAUSE": 2, "LOSS": 2}
    assert struck.keys() == {fault.name for fault in Fault}
