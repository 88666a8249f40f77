"""So much at once, so much a second, for so many senders."""

from __future__ import annotations

from linnet.core.allowances import Allowances
from linnet.core.ids import PeerId


def test_an_allowance_fills_up_again_with_time_and_no_further() -> None:
    allowances = Allowances(2.0, 0.5)
    peer = PeerId(b"p")
    assert [allowances.spend(peer, at) for at in (0.0, 0.0, 0.0, 1.0, 2.0, 2.0)] == [
        True,
        True,
        False,
        False,
        True,
        False,
    ]
    assert [allowances.spend(peer, 1000.0) for _ in range(3)] == [True, True, False]
    assert not allowances.spend(peer, 900.0), "a clock that goes back gives nothing"


def test_each_sender_has_its_own_and_as_many_are_remembered_as_is_said() -> None:
    allowances = Allowances(1.0, 1.0, senders=2)
    assert allowances.spend("a", 0.0)
    assert not allowances.spend("a", 0.0)
    assert allowances.spend("b", 0.0)
    assert allowances.spend("c", 0.0)
    assert len(allowances) == 2
    assert not allowances.spend("c", 0.0)
    assert allowances.spend("a", 0.0), "forgotten, so it begins anew"
