"""Memory of a job."""

from __future__ import annotations

import psutil

from linnet.lab.peak import PeakMemory, memory_of_tree


def test_the_peak_is_what_was_held_in_between() -> None:
    before = memory_of_tree(psutil.Process())
    with PeakMemory() as peak:
        held = bytearray(b"\1" * 80_000_000)
        for _ in range(3):
            peak._look()
        del held
    assert peak.bytes >= before + 60_000_000


def test_processes_below_count() -> None:
    own = psutil.Process().memory_info().rss
    with psutil.Popen(["sleep", "30"]) as child:
        assert memory_of_tree(psutil.Process()) > own // 2 + child.memory_info().rss
        child.kill()
