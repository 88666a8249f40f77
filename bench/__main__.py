"""Measure everything and print a table; the same as JSON with ``--json``.

``python -m bench [--quick] [--only NAME] [--json FILE] [--markdown]``. See docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from bench.runs import SECTIONS, run_all
from bench.tables import as_markdown, as_text

RUNS = 5


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Linnet on this machine.")
    parser.add_argument(
        "--only",
        metavar="NAME",
        action="append",
        choices=list(SECTIONS),
        default=[],
        help=f"only this section, once for each: {', '.join(SECTIONS)}",
    )
    parser.add_argument(
        "--quick", action="store_true", help="one short run of each: a smoke test, no figures"
    )
    parser.add_argument(
        "--json", metavar="FILE", type=Path, help="write JSON too; '-' for standard output alone"
    )
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument(
        "--dir", metavar="DIR", type=Path, help="where stores are made; the disk that is measured"
    )
    return parser.parse_args()


def main() -> int:
    """Run, and print. A missed target is no failure; what could not be measured is."""
    asked = arguments()
    run = run_all(
        asked.only,
        asked.quick,
        1 if asked.quick else RUNS,
        asked.dir,
        lambda name: print(f"measuring: {name}", file=sys.stderr, flush=True),
    )
    failed = any(measure.failed for measure in run.measures)
    as_json = json.dumps(run.as_json(), indent=1, ensure_ascii=False)
    if asked.json == Path("-"):
        print(as_json)
        return int(failed)
    if asked.json is not None:
        asked.json.write_text(as_json + "\n")
    print(as_markdown(run) if asked.markdown else as_text(run))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
