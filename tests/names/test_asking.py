"""One question to several peers: when it ends, and what is made of the answers."""

from __future__ import annotations

from msgspec.structs import replace
from tests.names.people import CONFIG, DAY, NOW, PLACE_C, Z, place, zone_of

from linnet.core.effects import Blame, CancelTimer, Send, SetTimer
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.names.asking import OWNER, Asking, Gathered
from linnet.names.config import NamesConfig
from linnet.names.messages import AskRecord, RecordIs
from linnet.trace.records import Kind, Record

A, B, C = (PeerId(letter * 32) for letter in (b"a", b"b", b"c"))
BLOCK = zone_of("alice").publish("music", place(PLACE_C, Z), DAY, NOW).block
KEY = BLOCK.lookup
TICK = Tick(OWNER, "ask", (1).to_bytes(8, "big"))


def test_all_are_asked_at_once_and_the_last_answer_ends_it() -> None:
    asking = Asking(NamesConfig(asks=2))
    assert asking.gather(KEY, (A, B, C)) == (
        1,
        [Send(A, AskRecord(1, KEY)), Send(B, AskRecord(1, KEY)), SetTimer(CONFIG.patience, TICK)],
    )
    assert asking.on_answer(A, RecordIs(1, KEY, (BLOCK,), None)) == []
    assert asking.on_answer(B, RecordIs(1, KEY, (BLOCK,), None)) == [
        CancelTimer(TICK),
        Gathered(1, (BLOCK,), 2),
    ]


def test_with_nobody_to_ask_there_is_nothing_to_wait_for() -> None:
    assert Asking(CONFIG).gather(KEY, ()) == (1, [Gathered(1, (), 0)])


def test_who_is_late_or_gone_is_not_waited_for() -> None:
    asking = Asking(CONFIG)
    asking.gather(KEY, (A, B, C))
    assert asking.on_answer(A, RecordIs(1, KEY, (), None)) == []
    assert asking.link_down(B) == []
    assert asking.fired(TICK) == [
        Record(Kind.DROPPED, peer=C, reason=Reason.TIMEOUT, note="a question for a record"),
        CancelTimer(TICK),
        Gathered(1, (), 1),
    ]
    stale = [Record(Kind.REJECTED, peer=C, reason=Reason.STALE, note="an answer nobody waits for")]
    assert asking.on_answer(C, RecordIs(1, KEY, (BLOCK,), None)) == stale
    assert asking.fired(TICK) == []


def test_answers_to_what_was_not_asked_are_rejected() -> None:
    asking = Asking(CONFIG)
    asking.gather(KEY, (A,))
    for peer, answer in ((B, RecordIs(1, KEY, (), None)), (A, RecordIs(1, bytes(32), (), None))):
        (record,) = asking.on_answer(peer, answer)
        assert isinstance(record, Record)
        assert (record.peer, record.reason) == (peer, Reason.STALE)


def test_blocks_that_are_none_are_blamed_and_left_out() -> None:
    asking = Asking(CONFIG)
    asking.gather(KEY, (A,))
    assert asking.on_answer(A, RecordIs(1, KEY, (replace(BLOCK, version=1), BLOCK), None)) == [
        Record(Kind.REJECTED, peer=A, reason=Reason.BAD_SIGNATURE, note="a record"),
        Blame(A, Reason.BAD_SIGNATURE),
        CancelTimer(TICK),
        Gathered(1, (BLOCK,), 1),
    ]


def test_a_refusal_is_no_answer() -> None:
    asking = Asking(CONFIG)
    asking.gather(KEY, (A,))
    assert asking.on_answer(A, RecordIs(1, KEY, (), Reason.FLOODING)) == [
        Record(Kind.REJECTED, peer=A, reason=Reason.FLOODING, note="a question for a record was refused"),
        CancelTimer(TICK),
        Gathered(1, (), 0),
    ]
