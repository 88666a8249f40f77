"""Runs the command behind it with a clock that is ahead by the seconds in the file `clock` of the home.

It is run as a script before ``python -m linnet.cli up``, and looks into the file at each look at the clock,
so that a clock can jump while its node runs.
"""

from __future__ import annotations

import mmap
import runpy
import struct
import sys
import time
from pathlib import Path

FILE = "clock"
FORM = struct.Struct("d")


def set_clock(home: Path, ahead: float) -> None:
    """Let the clock of a home be ahead by so many seconds."""
    path = home / FILE
    if not path.exists():
        path.write_bytes(FORM.pack(0.0))
    with path.open("r+b") as file:
        file.write(FORM.pack(ahead))


def run(command: list[str]) -> None:
    """Run `python -m MODULE WORDS --home HOME` in this process."""
    home = Path(command[command.index("--home") + 1])
    with (home / FILE).open("rb") as file:
        ahead = mmap.mmap(file.fileno(), FORM.size, access=mmap.ACCESS_READ)
    right = time.time  # noqa: TID251 - it is the clock that is wrong here

    def wrong() -> float:
        return right() + float(FORM.unpack(ahead[:])[0])

    time.time = wrong  # noqa: TID251
    from linnet.cli import moments

    moments.wall_clock = wrong
    sys.argv = command[2:]
    runpy.run_module(command[2], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    sys.path.pop(0)  # Modules of these tests are not what the node means.
    run(sys.argv[1:])
