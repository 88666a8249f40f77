"""Break the source on purpose, one place at a time, and see which tests notice.

    mutants.py packages linnet.streams linnet.rooms --count 200 --seed 1
    mutants.py packages linnet.content --count 20 --tests tests/content tests/sim/content --json
    mutants.py claims
    mutants.py claims docs/checklist/rooms.md --rows R12 R13 --mutants 20

``packages`` draws mutants by seed from the bodies of functions and runs tests that cover the changed line.
What survives is tried once more in a new process.
``claims`` takes the tests that a row of a checklist names and mutates lines that few other rows' tests run,
until an assertion of the row's tests fails; that the source itself crashed does not count. A row whose tests
let every mutant pass or only crash is suspicious: read it. The others are not proved: their tests can fail,
which does not mean that they fail for the claim.

The working tree is never touched. A mutant that makes tests run out of time counts as caught. Which test
runs which lines is kept in a file (--map). Its entry for a test holds until the test's file changes, or a
file of src that the test entered. Tests that are red without a mutant or take too long have no part in it,
and are named.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # it is run as a file

from scripts.mutation import Mutant  # noqa: E402
from scripts.mutation_bench import Bench, LineMap, Recorded, Tree  # noqa: E402

CAUGHT = ("failed", "crashed", "timeout")

Known = dict[str, Recorded]
Lines = Counter[tuple[str, int]]


@dataclass(frozen=True)
class Row:
    """A row of a checklist that names tests."""

    checklist: str
    number: str
    claim: str
    tests: tuple[str, ...]


def read_rows(path: Path) -> list[Row]:
    """Read the rows of a checklist that name tests."""
    rows = []
    for line in path.read_text().splitlines():
        tests = tuple(dict.fromkeys(re.findall(r"`(tests/[\w/]+\.py::\w+)`", line)))
        if tests and (match := re.match(r"\| ([A-Z]\d+[a-z]?) \| (.+) \|.*\|$", line)):
            rows.append(Row(path.stem, match[1], match[2], tests))
    return rows


def say(line: str) -> None:
    """Tell how far it is."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def estimate_limit(tests: Iterable[str], known: Known) -> float:
    """Return the seconds after which tests count as hanging. Recording was slower."""
    return 20 + 3 * sum(known[name].seconds for name in tests)


def choose_tests(mutant: Mutant, known: Known, seconds: float) -> list[str]:
    """Choose tests that run the changed line, the narrowest first, as many as fit into some seconds."""
    covering = [name for name, each in known.items() if each.covers(mutant.file, mutant.line)]
    covering.sort(key=lambda name: (len(known[name].lines), known[name].seconds))
    chosen: list[str] = []
    for name in covering:
        if not chosen or sum(known[each].seconds for each in (*chosen, name)) <= seconds:
            chosen.append(name)
    return chosen


def try_packages(options: argparse.Namespace, bench: Bench) -> dict[str, Any]:
    """Draw mutants from packages and run tests that cover them."""
    tree = bench.tree
    folders = [tree.copy / name.replace(".", "/") for name in options.packages]
    files = sorted({str(path.relative_to(tree.copy)) for folder in folders for path in folder.rglob("*.py")})
    every = [mutant for file in files for mutant in tree.mutants(file)]
    report: dict[str, Any] = {"seed": options.seed, "possible": len(every), "mutants": []}
    random.Random(options.seed).shuffle(every)  # noqa: S311
    mutants = list(islice((each for each in every if each.is_valid(tree.read(each.file))), options.count))

    def work() -> None:
        known, report["left_out"] = split(LineMap(options.map, bench, say).record(bench.items))
        for number, mutant in enumerate(mutants, 1):
            tests = choose_tests(mutant, known, options.seconds)
            limit = estimate_limit(tests, known)
            outcome = bench.run(tests, limit, mutant) if tests else "not covered"
            if outcome == "passed":
                outcome = bench.run_afresh(tests, limit, mutant)
            report["mutants"].append(describe(mutant, tree) | {"outcome": outcome, "tests": tests})
            say(f"{number}/{len(mutants)} {outcome} {mutant.file}:{mutant.line} {mutant.operator}")

    bench.collect(options.tests or [f"tests/{name.split('.')[1]}" for name in options.packages], work)
    report["caught"] = sum(each["outcome"] in CAUGHT for each in report["mutants"])
    return report


def try_claims(options: argparse.Namespace, bench: Bench) -> dict[str, Any]:
    """Mutate what the tests of each row run until one of them fails."""
    paths = options.checklists or sorted((options.root / "docs" / "checklist").glob("*.md"))
    rows = [row for path in paths for row in read_rows(path)]
    chosen = [row for row in rows if not options.rows or row.number in options.rows]
    named = dict.fromkeys(name for row in chosen for name in row.tests)
    tests = [name for name in named if not name.startswith(tuple(options.without))]
    report: dict[str, Any] = {"seed": options.seed, "rows": []}

    def work() -> None:
        known, report["left_out"] = split(LineMap(options.map, bench, say).record(tests))
        report["left_out"] |= {name: "not wanted" for name in named if name not in tests}
        shared: Lines = Counter()
        for row in chosen:
            shared.update(find_lines(row.tests, known))
        for number, row in enumerate(chosen, 1):
            found = try_row(row, options, bench, known, shared)
            report["rows"].append(found)
            verdict = "caught" if found["caught"] else "SUSPICIOUS" if found["mutants"] else "not tried"
            say(f"{number}/{len(chosen)} {row.checklist} {row.number} {verdict} {len(found['mutants'])}")

    bench.collect(tests, work)
    report["caught"] = sum(each["caught"] for each in report["rows"])
    return report


def find_lines(tests: Iterable[str], known: Known) -> set[tuple[str, int]]:
    """Find the lines that some of the tests run. What only tests use does not count."""
    found: dict[str, int] = {}
    for name in tests:
        for file, (_, bits) in known[name].lines.items() if name in known else ():
            if not file.startswith("linnet/testing/"):
                found[file] = found.get(file, 0) | int(bits, 16)
    return {
        (file, line) for file, bits in found.items() for line in range(bits.bit_length()) if bits >> line & 1
    }


def try_row(
    row: Row, options: argparse.Namespace, bench: Bench, known: Known, shared: Lines
) -> dict[str, Any]:
    """Try mutants for one row, at most one in each line, first in lines of few other rows."""
    lines = find_lines(row.tests, known)
    files = sorted({file for file, _ in lines})
    every = [mutant for file in files for mutant in bench.tree.mutants(file) if (file, mutant.line) in lines]
    random.Random(f"{options.seed} {row.number}").shuffle(every)  # noqa: S311
    every.sort(key=lambda mutant: shared[mutant.file, mutant.line])
    places = list({(mutant.file, mutant.line): mutant for mutant in every}.values())
    began, caught, tried, read = time.monotonic(), False, [], bench.tree.read
    for mutant in islice((each for each in places if each.is_valid(read(each.file))), options.mutants):
        tests = [name for name in row.tests if name in known and known[name].covers(mutant.file, mutant.line)]
        outcome = bench.run(tests, estimate_limit(tests, known), mutant)
        tried.append(describe(mutant, bench.tree) | {"outcome": outcome})
        caught = outcome == "failed"
        if caught or time.monotonic() - began > options.seconds:
            break
    return asdict(row) | {"caught": caught, "mutants": tried}


def split(recorded: Known) -> tuple[Known, dict[str, str]]:
    """Part tests that can take part from the others, with what became of those."""
    known = {name: each for name, each in recorded.items() if each.outcome == "passed"}
    return known, {name: each.outcome for name, each in recorded.items() if name not in known}


def describe(mutant: Mutant, tree: Tree) -> dict[str, Any]:
    """Describe a mutant for the report."""
    place = {"file": f"src/{mutant.file}", "line": mutant.line, "function": mutant.function[0]}
    return place | {"operator": mutant.operator, "diff": mutant.diff(tree.read(mutant.file))}


def print_report(report: dict[str, Any]) -> None:
    """Print what survived, as text."""
    for name, outcome in report["left_out"].items():
        print(f"left out: {name}, {outcome}")
    for each in report.get("mutants", ()):
        if each["outcome"] not in CAUGHT:
            print(
                f"\n{each['file']}:{each['line']} {each['function']}, {each['operator']}: {each['outcome']}"
            )
            print(each["diff"])
    for row in report.get("rows", ()):
        if not row["caught"]:
            print(f"\n{row['checklist']} {row['number']} {row['claim']}")
            for each in row["mutants"]:
                print(f"  {each['outcome']} {each['file']}:{each['line']} {each['function']}")
    count = len(report.get("mutants") or report["rows"])
    print(f"\n{report['caught']} of {count} caught ({100 * report['caught'] / max(1, count):.1f} %)")


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    summary, _, details = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="mutants.py",
        description=summary,
        epilog=details,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    modes = parser.add_subparsers(dest="mode", required=True)
    packages = modes.add_parser("packages", help="draw mutants from packages; the share that tests catch")
    packages.add_argument("packages", nargs="+", help="dotted names, as linnet.rooms")
    packages.add_argument("--count", type=int, default=200, help="how many mutants (200)")
    packages.add_argument("--tests", nargs="+", help="files or folders (tests/<package> of each)")
    claims = modes.add_parser("claims", help="rows of checklists whose tests catch nothing")
    claims.add_argument("checklists", nargs="*", type=Path, help="files (docs/checklist/*.md)")
    claims.add_argument("--rows", nargs="+", help="numbers of rows, as R12 (all)")
    claims.add_argument("--without", nargs="+", default=[], help="tests to leave out, as tests/lab")
    claims.add_argument("--mutants", type=int, default=10, help="at most so many for a row (10)")
    for mode in (packages, claims):
        mode.add_argument("--seed", type=int, default=1, help="the same seed draws the same mutants (1)")
        mode.add_argument(
            "--seconds", type=float, default=60, help="of tests for a mutant, or for a row (60)"
        )
        mode.add_argument("--limit", type=float, default=120, help="seconds for a test to be recorded (120)")
        mode.add_argument("--map", type=Path, help="the file of who runs what (ROOT/.mutants.json)")
        mode.add_argument("--root", type=Path, default=ROOT, help="where src, tests and docs are")
        mode.add_argument("--json", action="store_true", help="print the whole report as JSON")
    options = parser.parse_args(arguments)
    options.map = options.map or options.root / ".mutants.json"
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one mode and print its report."""
    options = read_options(arguments)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Tree(options.root / "src", Path(folder).resolve())
        sys.path[:0] = [str(tree.copy), str(options.root)]
        os.environ["PYTHONPATH"] = str(tree.copy)
        os.chdir(options.root)
        bench = Bench(options.root, tree, options.limit)
        report = try_packages(options, bench) if options.mode == "packages" else try_claims(options, bench)
    if options.json:
        print(json.dumps(report, indent=1))
    else:
        print_report(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
