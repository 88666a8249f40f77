from __future__ import annotations

from tests.overlay.harness import peer_id

from linnet.core.effects import Probe
from linnet.core.ids import Contact
from linnet.core.reasons import Reason
from linnet.overlay.reachability import Callee

PEER = peer_id("a")
HERE, THERE = ("tls://here:1",), ("tls://there:1",)


def test_it_is_tried_once_and_again_when_it_moves() -> None:
    callee = Callee()
    assert callee.listen(PEER, HERE) == [Probe(PEER, HERE)]
    assert callee.contact(PEER) == Contact(PEER, HERE)
    assert callee.listen(PEER, HERE) == []
    assert callee.probed(PEER, Reason.DIAL_TIMEOUT) is None
    assert callee.contact(PEER) == Contact(PEER)
    assert callee.listen(PEER, HERE) == []
    assert callee.listen(PEER, THERE) == [Probe(PEER, THERE)]
    assert callee.probed(PEER, None) is None
    assert callee.is_dialable


def test_one_attempt_at_a_time() -> None:
    callee = Callee()
    callee.listen(PEER, HERE)
    assert callee.listen(PEER, THERE) == []
    assert callee.listen(PEER, ()) == []
    assert callee.listen(PEER, THERE) == []
    assert callee.probed(PEER, None) == [Probe(PEER, THERE)]
    assert callee.probed(PEER, Reason.UNREACHABLE) is None
    assert not callee.is_dialable


def test_without_addresses_there_is_nothing_to_try() -> None:
    callee = Callee()
    assert callee.listen(PEER, ()) == []
    assert not callee.is_dialable
    callee.listen(PEER, HERE)
    callee.listen(PEER, ())
    assert callee.probed(PEER, None) == []
    assert not callee.is_dialable
