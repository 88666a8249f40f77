"""Pack the sources of a released version for the tests that upgrade from it.

python scripts/previous_version.py eaae3b3 tests/vectors/linnet-0.1.0.tar.xz

The tests run it in processes of its own, also where the clone has no history. What a node does not need (the
lab, the simulator, the helpers of tests) is left out. The same commit always gives the same files.
"""

from __future__ import annotations

import lzma
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LEFT_OUT = ("lab", "sim", "testing")


def packed(commit: str) -> bytes:
    """The sources of a commit, as a compressed archive."""
    paths = ["src/linnet", *(f":(exclude)src/linnet/{name}" for name in LEFT_OUT)]
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", commit, "--", *paths]
    tar = subprocess.run(command, capture_output=True, check=True).stdout  # noqa: S603 - our own words
    return lzma.compress(tar, preset=9 | lzma.PRESET_EXTREME)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python scripts/previous_version.py COMMIT FILE")
    Path(sys.argv[2]).write_bytes(packed(sys.argv[1]))
