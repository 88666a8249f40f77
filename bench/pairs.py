"""Two versions side by side: ratios of one version's figures to another's, from interleaved pairs of runs.

    git worktree add build/before eaae3b3
    python -m bench.pairs build/before --only simulator --only network --only rooms --pairs 10
    python -m bench.pairs build/before --only simulator --runs 1 --json bench/results/eaae3b3.json

Every pair runs both versions, one right after the other, and every other pair begins with the other version,
so that what the machine does meanwhile meets both alike. Both run with the libraries of this Python. A ratio
above 1 says that the later version is better: figures of which less is better are turned round. Each ratio is
the median of the pairs with a bootstrap interval of 90 %.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

HERE = Path(__file__).resolve().parents[1]
LESS_IS_BETTER = frozenset({"s", "ms", "µs", "MiB", "bytes"})
"""Units of times and sizes."""
ENOUGH = 0.97
"""From this median ratio on a version counts as fast as the one before it."""
_RESAMPLES = 5_000


class Figure(Struct, frozen=True):
    """One figure of one run, as `python -m bench --json -` tells it."""

    section: str
    name: str
    unit: str
    median: float | None

    @property
    def key(self) -> str:
        """What both versions call it."""
        return f"{self.section}: {self.name}"


class Told(Struct, frozen=True):
    """What one run of the bench tells."""

    machine: dict[str, str]
    measures: Annotated[tuple[Figure, ...], Meta(min_length=1)]


class Ratio(Struct, frozen=True):
    """How the later version stands to the earlier one in one figure."""

    figure: str
    unit: str
    before: float
    """The median of the earlier version's runs."""
    after: float
    ratio: float
    """The median over the pairs; above 1 the later version is better."""
    low: float
    high: float
    pairs: int

    @property
    def holds(self) -> bool:
        """Whether the later version is as good, as far as these pairs can tell."""
        return self.ratio >= ENOUGH or self.low <= 1 <= self.high


class Comparison(Struct, frozen=True):
    """All ratios, and on what they were taken."""

    before: str
    after: str
    machine: dict[str, str]
    ratios: tuple[Ratio, ...]


def interval_of(ratios: Sequence[float]) -> tuple[float, float]:
    """The 90 % interval of the median, by resampling; the same for the same ratios."""
    luck = random.Random(1)
    medians = sorted(statistics.median(luck.choices(ratios, k=len(ratios))) for _ in range(_RESAMPLES))
    return medians[int(0.05 * _RESAMPLES)], medians[int(0.95 * _RESAMPLES)]


def compare_pairs(pairs: Sequence[tuple[Told, Told]]) -> tuple[Ratio, ...]:
    """The ratio of each figure that both versions took in every pair."""
    runs = [
        ({each.key: each for each in before.measures}, {each.key: each for each in after.measures})
        for before, after in pairs
    ]
    found = []
    for key, figure in runs[0][0].items():
        taken = [
            (earlier, later)
            for before, after in runs
            if key in before
            and key in after
            and (earlier := before[key].median)
            and (later := after[key].median)
        ]
        if len(taken) < len(pairs):
            continue
        ratios = [a / b if figure.unit in LESS_IS_BETTER else b / a for a, b in taken]
        low, high = interval_of(ratios)
        before, after = (statistics.median(column) for column in zip(*taken, strict=True))
        found.append(Ratio(key, figure.unit, before, after, statistics.median(ratios), low, high, len(taken)))
    return tuple(found)


def run_bench(tree: Path, asked: argparse.Namespace) -> Told:
    """Run the bench of one version, in a process of its own."""
    only = [word for section in asked.only for word in ("--only", section)]
    # Versions from before `--runs` keep their number of runs in the same name.
    start = f"import sys, bench.__main__ as bench; bench.RUNS = {asked.runs}; sys.exit(bench.main())"
    done = subprocess.run(
        [sys.executable, "-c", start, *only, *(["--quick"] if asked.quick else []), "--json", "-"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return msgspec.json.decode(done.stdout, type=Told)
    except msgspec.DecodeError as error:
        last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise SystemExit(f"the bench of {tree.name} ended with {done.returncode} and said: {last}") from error


def run_pairs(asked: argparse.Namespace, tell: Callable[[str], None]) -> Iterator[tuple[Told, Told]]:
    """Run so many pairs; every other one begins with the later version."""
    for number in range(asked.pairs):
        tell(f"pair {number + 1} of {asked.pairs}")
        if number % 2:
            later = run_bench(asked.after, asked)
            yield run_bench(asked.before, asked), later
        else:
            earlier = run_bench(asked.before, asked)
            yield earlier, run_bench(asked.after, asked)


def name_version(tree: Path) -> str:
    """The commit of a tree, and whether something in it was changed since."""
    done = subprocess.run(
        ["git", "-C", str(tree), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"


def as_text(comparison: Comparison) -> str:
    """A table for a terminal."""
    lines = [f"{'figure':<58} {'before':>12} {'after':>12}  ratio (90 %)"]
    lines += [
        f"{each.figure[:58]:<58} {each.before:>12,.4g} {each.after:>12,.4g}  "
        f"{each.ratio:.3f} ({each.low:.3f} to {each.high:.3f}){'' if each.holds else '  slower'}"
        for each in comparison.ratios
    ]
    return "\n".join([f"{comparison.before} -> {comparison.after}", *lines])


def arguments() -> argparse.Namespace:
    """What was asked for."""
    first, _, rest = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        prog="python -m bench.pairs",
        description=first,
        epilog=rest,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("before", type=Path, help="the tree of the earlier version")
    parser.add_argument("--after", type=Path, default=HERE, help="the tree of the later version (this one)")
    parser.add_argument(
        "--only", metavar="NAME", action="append", required=True, help="a section of the bench"
    )
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--runs", type=int, default=5, help="runs of each figure in one bench (5)")
    parser.add_argument("--quick", action="store_true", help="short runs: a smoke test, no figures")
    parser.add_argument("--json", type=Path, help="write the ratios to this file too")
    return parser.parse_args()


def main() -> int:
    """Run, print and keep. That a version is slower is a finding, not a failure."""
    asked = arguments()
    for name in ("pairs", "runs"):
        if getattr(asked, name) < 1:
            raise SystemExit(f"--{name} takes 1 or more")
    for tree in (asked.before, asked.after):
        if not (tree / "bench" / "__main__.py").is_file():
            raise SystemExit(f"{tree} holds no bench: name a checkout of Linnet")
    asked.before, asked.after = asked.before.resolve(), asked.after.resolve()
    versions = name_version(asked.before), name_version(asked.after)
    pairs: list[tuple[Told, Told]] = []
    for pair in run_pairs(asked, lambda line: print(line, file=sys.stderr, flush=True)):
        pairs.append(pair)
        machine = {name: value for name, value in pair[1].machine.items() if name != "stores"}
        comparison = Comparison(*versions, machine, compare_pairs(pairs))
        if asked.json:  # After every pair: whoever ends this early has the pairs until then.
            asked.json.write_text(
                json.dumps(msgspec.to_builtins(comparison), indent=1, ensure_ascii=False) + "\n"
            )
    print(as_text(comparison))
    return 0


if __name__ == "__main__":
    sys.exit(main())
