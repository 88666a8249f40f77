from __future__ import annotations

from linnet.core.timers import Tick


def test_equal_ticks_are_one_timer() -> None:
    pending = {Tick("links", "ping", b"a"): 1.0}
    pending[Tick("links", "ping", b"a")] = 2.0
    pending[Tick("links", "ping", b"b")] = 3.0
    pending[Tick("links", "dial", b"a")] = 4.0
    pending[Tick("gaps", "ping", b"a")] = 5.0
    assert list(pending.values()) == [2.0, 3.0, 4.0, 5.0]
