"""Memory of a job."""

from __future__ import annotations

import subprocess
import sys

import psutil

from linnet.lab.peak import memory_of_tree

# In a process of its own: below that of the tests, workers of Spark end whenever they please.
HOLDING = """
import psutil
from linnet.lab.peak import PeakMemory, memory_of_tree

before = memory_of_tree(psutil.Process())
with PeakMemory() as peak:
    held = bytearray(b"\\1" * 80_000_000)
    peak._look()
    del held
print(peak.bytes - before)
"""


def test_the_peak_is_what_was_held_in_between() -> None:
    done = subprocess.run([sys.executable, "-c", HOLDING], check=True, capture_output=True, text=True)
    assert int(done.stdout) >= 60_000_000


def test_processes_below_count() -> None:
    own = psutil.Process().memory_info().rss
    with psutil.Popen(["sleep", "30"]) as child:
        assert memory_of_tree(psutil.Process()) > own // 2 + child.memory_info().rss
        child.kill()
