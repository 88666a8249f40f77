"""Put what the study of attacks measured into docs/security.md.

    linnet lab study attacks --out attacks       # runs every attack over five seeds
    python scripts/attack_table.py attacks       # prints the tables
    python scripts/attack_table.py attacks --write

The last one replaces what is between two marks on that page.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "security.md"
BEGIN = (
    "<!-- attacks: linnet lab study attacks --out attacks; python scripts/attack_table.py attacks --write -->"
)
END = "<!-- end of attacks -->"
_WIDTH = 140
"""Characters of a line of text in the page."""


def table_of(grid: dict[str, Any]) -> Iterator[str]:
    """Return the lines of one table of a study in Markdown, with its note."""
    columns = grid["columns"]
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)
    for row in grid["rows"]:
        yield f"| {' | '.join('' if cell is None else format(cell) for cell in row)} |"
    yield ""
    yield fill(grid["note"], _WIDTH)


def tables_of(summary: dict[str, Any]) -> str:
    """Return all tables of a study in Markdown."""
    if summary["study"] != "attacks":
        raise SystemExit(f"that is the study of {summary['study']}, not of attacks")
    told = summary["parameters"]
    first = f"Measured over {told['repeats']} seeds from {told['seed']} on, attacks: {told['attacks']}."
    parts = ["\n".join(table_of(grid)) for grid in summary["tables"]]
    return "\n\n".join([first, *parts])


def put_in(page: str, tables: str) -> str:
    """Return the page with these tables between its markers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE.name} lacks the marks {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}"


def main(words: list[str]) -> None:
    """Print the tables of a study, or write them into the page."""
    folders = [word for word in words if not word.startswith("--")]
    if len(folders) != 1:
        raise SystemExit(__doc__)
    tables = tables_of(json.loads((Path(folders[0]) / "summary.json").read_text()))
    if "--write" in words:
        PAGE.write_text(put_in(PAGE.read_text(), tables))
        print(f"wrote {PAGE.name}")
    else:
        print(tables)


if __name__ == "__main__":
    main(sys.argv[1:])
