from __future__ import annotations

import os
import subprocess
import sys

import pytest

from linnet.sim.nemesis.course import WAYS, coverage_of, run_course
from linnet.sim.nemesis.faults import Fault

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


def test_every_fault_strikes_every_way() -> None:
    for way in WAYS:
        struck = coverage_of([run_course(way, seed) for seed in range(1, 31)])
        assert min(struck.values()) > 0, (way, struck)
        assert struck.keys() == {fault.name for fault in Fault}
