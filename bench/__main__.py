"""Measure everything and print a table; the same as JSON with ``--json``.

``python -m bench [--quick] [--only NAME] [--json FILE] [--markdown]``. See docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from bench.runs import SECTIONS, Run, run_all
from bench.tables import as_markdown, as_text, section_lines

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


def text_of(run: Run) -> str:
    """A run as JSON."""
    return json.dumps(run.as_json(), indent=1, ensure_ascii=False)


def keep(run: Run, file: Path | None) -> None:
    """Print what the latest section found beside the result, and write all that there is so far.

    A run takes long: whoever ends it early, or whose machine does, has what was measured until then.
    """
    latest = run.measures[-1].section if run.measures else ""
    for line in section_lines(run, latest):
        print(line, file=sys.stderr, flush=True)
    if file is not None and file != Path("-"):
        # As a whole or not at all: it may be read while this goes on.
        beside = file.with_name(f"{file.name}.new")
        beside.write_text(text_of(run) + "\n")
        beside.replace(file)


def main() -> int:
    """Run, and print. A missed target is no failure; what could not be measured is."""
    asked = arguments()
    run = run_all(
        asked.only,
        asked.quick,
        1 if asked.quick else RUNS,
        asked.dir,
        lambda name: print(f"measuring: {name}", file=sys.stderr, flush=True),
        lambda run: keep(run, asked.json),
    )
    failed = any(measure.failed for measure in run.measures)
    if asked.json == Path("-"):
        print(text_of(run))
        return int(failed)
    print(as_markdown(run) if asked.markdown else as_text(run))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
