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


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_promise_is_kept_in_the_open_world(way: str, seed: int) -> None:
    report = run_course(way, seed)
    assert report.complaints == (), report.faults


@pytest.mark.parametrize("way", WAYS)
def test_equal_seeds_give_equal_runs_in_another_process_too(way: str) -> None:
    code = f"from linnet.sim.nemesis.course import run_course; print(run_course({way!r}, 2).trace_sha256)"
    environment = dict(os.environ, PYTHONHASHSEED="12345")
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert other.stdout.strip() == run_course(way, 2).trace_sha256 != run_course(way, 3).trace_sha256


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
