"""Ratios of two versions, from pairs of runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from bench.pairs import Figure, Told, compare_pairs, interval_of

ROOT = Path(__file__).resolve().parents[2]


def told(**medians: float | None) -> Told:
    units = {"rate": "1/s", "size": "MiB"}
    return Told({}, tuple(Figure("part", name, units[name], median) for name, median in medians.items()))


def test_a_rate_that_doubled_and_a_size_that_halved_are_both_twice_as_good() -> None:
    rate, size = compare_pairs([(told(rate=10.0, size=8.0), told(rate=20.0, size=4.0))] * 3)
    assert (rate.ratio, size.ratio) == (2.0, 2.0)
    assert (rate.before, rate.after, size.before, size.after) == (10.0, 20.0, 8.0, 4.0)


def test_a_ratio_is_the_median_of_the_pairs_and_not_of_the_medians() -> None:
    # The machine slows down from pair to pair; each pair alone shows the same ratio.
    (rate,) = compare_pairs([(told(rate=each), told(rate=each * 0.9)) for each in (100.0, 50.0, 10.0)])
    assert rate.ratio == pytest.approx(0.9)
    assert not rate.holds


def test_a_slower_version_holds_only_if_its_interval_has_one_in_it() -> None:
    steady = [(told(rate=100.0), told(rate=95.0))] * 6
    noisy = [(told(rate=100.0), told(rate=each)) for each in (80.0, 95.0, 95.0, 120.0, 70.0, 130.0)]
    assert [each.holds for each in (*compare_pairs(steady), *compare_pairs(noisy))] == [False, True]


def test_a_figure_that_one_run_could_not_take_is_left_out() -> None:
    whole, without = told(rate=10.0, size=8.0), told(rate=10.0, size=None)
    assert [each.figure for each in compare_pairs([(whole, whole), (whole, without)])] == ["part: rate"]


def test_an_interval_is_the_same_every_time() -> None:
    ratios = [0.9, 1.0, 1.1, 1.3, 0.8]
    low, high = interval_of(ratios)
    assert interval_of(ratios) == (low, high)
    assert 0.8 <= low < high <= 1.3


def test_a_folder_without_a_bench_is_told_in_a_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.pairs", str(tmp_path), "--only", "encoding"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert done.stderr.strip() == f"{tmp_path} holds no bench: name a checkout of Linnet"


def test_a_version_beside_itself_is_measured() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.pairs", ".", "--only", "encoding", "--pairs", "1", "--quick"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "encoding: " in done.stdout
