from __future__ import annotations

from tests.overlay.harness import peer_id, said

from linnet.core.effects import Probe
from linnet.core.ids import Contact
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.overlay.reachability import Callee

PEER = peer_id("a")
HERE, THERE = ("tls://here:1",), ("tls://there:1",)


def test_it_is_tried_once_and_again_when_it_moves() -> None:
    callee, out = Callee(), Outbox()
    assert said(out, callee.note_addresses, PEER, HERE, out) == [Probe(PEER, HERE)]
    assert callee.contact(PEER) == Contact(PEER, HERE)
    assert said(out, callee.note_addresses, PEER, HERE, out) == []
    assert callee.handle_probe(PEER, Reason.DIAL_TIMEOUT, out)
    assert callee.contact(PEER) == Contact(PEER)
    assert said(out, callee.note_addresses, PEER, HERE, out) == []
    assert said(out, callee.note_addresses, PEER, THERE, out) == [Probe(PEER, THERE)]
    assert callee.handle_probe(PEER, None, out)
    assert callee.is_dialable


def test_one_attempt_at_a_time() -> None:
    callee, out = Callee(), Outbox()
    callee.note_addresses(PEER, HERE, out)
    assert said(out, callee.note_addresses, PEER, THERE, out) == []
    assert said(out, callee.note_addresses, PEER, (), out) == []
    assert said(out, callee.note_addresses, PEER, THERE, out) == []
    assert said(out, callee.handle_probe, PEER, None, out) == [Probe(PEER, THERE)]
    assert callee.handle_probe(PEER, Reason.UNREACHABLE, out)
    assert not callee.is_dialable


def test_without_addresses_there_is_nothing_to_try() -> None:
    callee, out = Callee(), Outbox()
    assert said(out, callee.note_addresses, PEER, (), out) == []
    assert not callee.is_dialable
    callee.note_addresses(PEER, HERE, out)
    callee.note_addresses(PEER, (), out)
    assert said(out, callee.handle_probe, PEER, None, out) == []
    assert not callee.is_dialable
