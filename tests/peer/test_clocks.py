from __future__ import annotations

from linnet.core.ids import PeerId
from linnet.peer.links import PeerClocks

A, B = PeerId(b"a" * 32), PeerId(b"b" * 32)


def test_the_last_word_of_each_peer_counts_until_its_link_is_gone() -> None:
    clocks = PeerClocks()
    clocks.heard(A, 1_000_000_000, 1_010.0)
    clocks.heard(A, 1_060_500_000, 1_000.0)
    clocks.heard(B, 999_000_000, 1_000.0)
    assert clocks.ahead() == (-1.0, 60.5)
    clocks.gone(B)
    clocks.gone(B)
    assert clocks.ahead() == (60.5,)
