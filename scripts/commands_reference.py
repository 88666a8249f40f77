"""Write docs/reference/commands.md from the help of the command line.

python scripts/commands_reference.py          # write it
python scripts/commands_reference.py --check  # exit 1 if it is out of date
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer import Typer

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "commands.md"
WIDTH = "100"
HEAD = """# Commands

Written by `scripts/commands_reference.py` from the commands' own help; a test fails if it is out of date.

Every command takes `--json`. Results go to standard output, everything else to standard error. A command
that fails says why and what to do next, in a line.

| Exit status | Means |
|---|---|
| 0 | done |
| 1 | failed, declined, or something was lost |
| 2 | wrong usage |
| 69 | no node runs in this home |
| 78 | the configuration or the home is wrong |
| 130 | ended by Ctrl-C |

`--home DIR` or `LINNET_HOME` names the node's home, `~/.linnet` otherwise. A stream named `me/NAME` is the
stream `NAME` of the home's person.
"""


def page() -> str:
    """The page as it should be."""
    return "\n".join([HEAD, *map(section, commands())])


def section(words: tuple[str, ...]) -> str:
    """What the help of one command says."""
    from typer.testing import CliRunner

    from linnet.cli.app import app

    # What the terminal and the user have set must not show.
    environment = {"COLUMNS": WIDTH, "TERMINAL_WIDTH": WIDTH, "NO_COLOR": "1", "LINNET_HOME": None}
    result = CliRunner().invoke(app, [*words, "--help"], env=environment, prog_name="linnet")
    if result.exit_code:
        raise SystemExit(result.output)
    lines = [line.rstrip() for line in result.stdout.strip().splitlines()]
    return f"## linnet {' '.join(words)}\n\n```text\n" + "\n".join(lines) + "\n```\n"


def commands(of: Typer | None = None) -> list[tuple[str, ...]]:
    """Every command by its words, however deep, in the order of the help."""
    from linnet.cli.app import app

    within = of or app
    found: list[tuple[str, ...]] = [(str(each.name),) for each in within.registered_commands]
    for group in within.registered_groups:
        if group.typer_instance is not None:
            found += [(str(group.name), *words) for words in commands(group.typer_instance)]
    return found


def main() -> None:
    """Write or check the page."""
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text() != page():
            raise SystemExit(f"{PAGE.name} is out of date: python scripts/commands_reference.py")
        return
    PAGE.write_text(page())
    print(f"wrote {os.path.relpath(PAGE)}")


if __name__ == "__main__":
    main()
