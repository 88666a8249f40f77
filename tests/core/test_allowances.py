"""So much at once, so much a second, for so many peers."""

from __future__ import annotations

from linnet.core.allowances import PEERS, Allowances
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


def test_those_unheard_of_for_longest_are_forgotten() -> None:
    allowances = Allowances(1.0, 0.0)
    peers = [PeerId(number.to_bytes(4, "big")) for number in range(PEERS + 1)]
    assert all(allowances.spend(peer, 0.0) for peer in peers)
    assert allowances.spend(peers[0], 0.0)
    assert not allowances.spend(peers[-1], 0.0)
