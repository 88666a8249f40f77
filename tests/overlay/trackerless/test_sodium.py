"""libsodium: it is there when it is needed, once, and its file is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from linnet.overlay.trackerless.sodium import library

PROGRAM = """
import os, sys
from linnet.overlay.trackerless.oblivious import RISTRETTO
point = RISTRETTO.hash_to_group(b"x")
if hasattr(os, "fork") and (child := os.fork()):
    os.waitpid(child, 0)
print(RISTRETTO.multiply(RISTRETTO.reduce(b"\\x07" + bytes(63)), point).hex(), flush=True)
os._exit(0) if not sys.argv[1:] else os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a library in use cannot be removed there")
@pytest.mark.parametrize("killed", [(), ("killed",)], ids=["ends", "is killed"])
def test_a_process_leaves_nothing_in_the_temporary_folder(tmp_path: Path, killed: tuple[str, ...]) -> None:
    """However it ends, and though a child of it goes on with what is mapped."""
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM, *killed]
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    assert done.stderr == ""
    lines = done.stdout.split()
    assert len(lines) == 2
    assert len(set(lines)) == 1
    assert list(tmp_path.iterdir()) == []


def test_it_is_loaded_once() -> None:
    assert library() is library()
