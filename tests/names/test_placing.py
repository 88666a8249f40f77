"""Who was handed our records, and what became of it."""

from __future__ import annotations

from tests.names.people import DAY, NOW, PLACE_C, Z, place, zone_of

from linnet.core.effects import Send, SetTimer
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.names.asking import OWNER
from linnet.names.messages import PutAnswer, PutRecord
from linnet.names.placing import TOLD, Placing
from linnet.trace.records import Kind, Record

A, B, C = (PeerId(letter * 32) for letter in (b"a", b"b", b"c"))
ZONE = zone_of("alice")
OLD = ZONE.publish("music", place(PLACE_C, Z), DAY, NOW).block
NEW = ZONE.publish("music", place(PLACE_C, Z), DAY, NOW + 1).block


def tick(number: int) -> Tick:
    return Tick(OWNER, "put", number.to_bytes(8, "big"))


def test_answers_silence_and_lost_links_are_all_known() -> None:
    placing = Placing(2.0)
    assert placing.hand(OLD, (A,)) == [Send(A, PutRecord(1, OLD)), SetTimer(2.0, tick(1))]
    placing.hand(OLD, (B, C))
    assert placing.on_answer(A, PutAnswer(1, None)) == []
    note = "a record of ours"
    assert placing.fired(tick(2)) == [Record(Kind.DROPPED, peer=B, reason=Reason.TIMEOUT, note=note)]
    assert placing.link_down(C, Reason.CRASHED) == [
        Record(Kind.DROPPED, peer=C, reason=Reason.CRASHED, note=note)
    ]
    assert placing.told(OLD) == ((A, None), (B, Reason.TIMEOUT), (C, Reason.CRASHED))
    assert placing.fired(tick(1)) == []


def test_what_was_said_of_an_older_version_says_nothing_of_a_newer() -> None:
    placing = Placing(2.0)
    placing.hand(OLD, (A,))
    placing.on_answer(A, PutAnswer(1, None))
    placing.hand(NEW, (A,))
    assert placing.told(NEW) == ()
    note = "a record of ours"
    assert placing.on_answer(A, PutAnswer(2, Reason.QUOTA)) == [
        Record(Kind.REJECTED, peer=A, reason=Reason.QUOTA, note=note)
    ]
    assert placing.told(NEW) == ((A, Reason.QUOTA),)
    placing.forget(NEW.lookup)
    assert placing.told(NEW) == ()


def test_what_is_remembered_of_peers_has_bounds() -> None:
    placing = Placing(2.0)
    peers = [PeerId(n.to_bytes(32, "big")) for n in range(TOLD + 9)]
    placing.hand(OLD, peers)
    for number, peer in enumerate(peers, start=1):
        placing.on_answer(peer, PutAnswer(number, None))
    assert placing.told(OLD) == tuple((peer, None) for peer in peers[-TOLD:])


def test_an_answer_to_what_was_forgotten_leaves_nothing_behind() -> None:
    placing = Placing(2.0)
    placing.hand(OLD, (A,))
    placing.forget(OLD.lookup)
    assert placing.on_answer(A, PutAnswer(1, None)) == []
    assert placing.told(OLD) == ()


def test_answers_of_others_are_rejected() -> None:
    placing = Placing(2.0)
    placing.hand(OLD, (A,))
    for peer, number in ((B, 1), (A, 9)):
        (record,) = placing.on_answer(peer, PutAnswer(number, None))
        assert isinstance(record, Record)
        assert record.reason is Reason.STALE
