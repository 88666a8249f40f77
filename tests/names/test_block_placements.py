"""Who was handed our records, and what became of it."""

from __future__ import annotations

from tests.names.people import DAY, NOW, PLACE_C, Z, place, zone_of

from linnet.core.effects import Send, SetTimer
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Effect, Outbox
from linnet.names.messages import PutAnswer, PutRecord
from linnet.names.record_exchange import ANSWERS, BlockPlacements, PutDue
from linnet.names.records import Block
from linnet.trace.records import Kind, Record

A, B, C = (PeerId(letter * 32) for letter in (b"a", b"b", b"c"))
ZONE = zone_of("alice")
OLD = ZONE.publish("music", place(PLACE_C, Z), DAY, NOW).block
NEW = ZONE.publish("music", place(PLACE_C, Z), DAY, NOW + 1).block


class Desk:
    """What is handed out, and its outbox."""

    def __init__(self) -> None:
        self.out = Outbox()
        self.placing = BlockPlacements(2.0, self.out)

    def hand(self, block: Block, *peers: PeerId) -> list[Effect]:
        self.placing.hand_block(block, peers)
        return self.out.take()

    def answer(self, peer: PeerId, message: PutAnswer) -> list[Effect]:
        self.placing.handle_answer(peer, message)
        return self.out.take()

    def time_out(self, number: int) -> list[Effect]:
        self.placing.handle_timeout(PutDue(number))
        return self.out.take()


def test_answers_silence_and_lost_links_are_all_known() -> None:
    desk = Desk()
    assert desk.hand(OLD, A) == [Send(A, PutRecord(1, OLD)), SetTimer(2.0, PutDue(1))]
    desk.hand(OLD, B, C)
    assert desk.answer(A, PutAnswer(1, None)) == []
    note = "a record of ours"
    assert desk.time_out(2) == [Record(Kind.DROPPED, peer=B, reason=Reason.TIMEOUT, note=note)]
    desk.placing.handle_link_down(C, Reason.CRASHED)
    assert desk.out.take() == [Record(Kind.DROPPED, peer=C, reason=Reason.CRASHED, note=note)]
    assert desk.placing.answers(OLD) == ((A, None), (B, Reason.TIMEOUT), (C, Reason.CRASHED))
    assert desk.time_out(1) == []


def test_what_was_said_of_an_older_version_says_nothing_of_a_newer() -> None:
    desk = Desk()
    desk.hand(OLD, A)
    desk.answer(A, PutAnswer(1, None))
    desk.hand(NEW, A)
    assert desk.placing.answers(NEW) == ()
    note = "a record of ours"
    assert desk.answer(A, PutAnswer(2, Reason.QUOTA)) == [
        Record(Kind.REJECTED, peer=A, reason=Reason.QUOTA, note=note)
    ]
    assert desk.placing.answers(NEW) == ((A, Reason.QUOTA),)
    desk.placing.forget_lookup(NEW.lookup)
    assert desk.placing.answers(NEW) == ()


def test_what_is_remembered_of_peers_has_bounds() -> None:
    desk = Desk()
    peers = [PeerId(n.to_bytes(32, "big")) for n in range(ANSWERS + 9)]
    desk.hand(OLD, *peers)
    for number, peer in enumerate(peers, start=1):
        desk.answer(peer, PutAnswer(number, None))
    assert desk.placing.answers(OLD) == tuple((peer, None) for peer in peers[-ANSWERS:])


def test_an_answer_to_what_was_forgotten_leaves_nothing_behind() -> None:
    desk = Desk()
    desk.hand(OLD, A)
    desk.placing.forget_lookup(OLD.lookup)
    assert desk.answer(A, PutAnswer(1, None)) == []
    assert desk.placing.answers(OLD) == ()


def test_answers_of_others_are_rejected() -> None:
    desk = Desk()
    desk.hand(OLD, A)
    for peer, number in ((B, 1), (A, 9)):
        (record,) = desk.answer(peer, PutAnswer(number, None))
        assert isinstance(record, Record)
        assert record.reason is Reason.STALE
