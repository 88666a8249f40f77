from __future__ import annotations

from tests.due import Due

from linnet.core.timers import Timer


class Late(Timer, frozen=True):
    """Another timer with the same fields."""

    what: str
    key: bytes = b""


def test_equal_timers_of_one_type_are_one_timer() -> None:
    pending: dict[Timer, float] = {Due("ping", b"a"): 1.0}
    pending[Due("ping", b"a")] = 2.0
    pending[Due("ping", b"b")] = 3.0
    pending[Due("dial", b"a")] = 4.0
    pending[Late("ping", b"a")] = 5.0
    assert list(pending.values()) == [2.0, 3.0, 4.0, 5.0]
