"""Questions for records and the serving side: what is asked of peers, and what is kept for others."""

from __future__ import annotations

from msgspec.structs import replace
from tests.names.people import CONFIG, DAY, NOW, PLACE_C, Z, place, zone_of

from linnet.core.effects import AfterCommit, Blame, CancelTimer, Send, SetTimer
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Effect, Outbox
from linnet.names.block_store import BlockShelf
from linnet.names.config import NamesConfig
from linnet.names.messages import AskRecord, PutAnswer, PutRecord, RecordIs
from linnet.names.record_exchange import AskDue, BlockServer, Gathered, RecordQueries
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

A, B, C = (PeerId(letter * 32) for letter in (b"a", b"b", b"c"))
BLOCK = zone_of("alice").publish("music", place(PLACE_C, Z), DAY, NOW).block
KEY = BLOCK.lookup
DUE = AskDue(1)


class Desk:
    """Questions, and their outbox."""

    def __init__(self, config: NamesConfig = CONFIG) -> None:
        self.out = Outbox()
        self.asking = RecordQueries(config, self.out)

    def ask(self, *peers: PeerId) -> tuple[Gathered | None, list[Effect]]:
        ended = self.asking.ask_peers(self.asking.next_number(), KEY, peers)
        return ended, self.out.take()

    def answer(self, peer: PeerId, message: RecordIs) -> tuple[Gathered | None, list[Effect]]:
        return self.asking.handle_answer(peer, message), self.out.take()


def test_all_are_asked_at_once_and_the_last_answer_ends_it() -> None:
    desk = Desk(NamesConfig(asks=2))
    assert desk.ask(A, B, C) == (
        None,
        [Send(A, AskRecord(1, KEY)), Send(B, AskRecord(1, KEY)), SetTimer(CONFIG.patience, DUE)],
    )
    assert desk.answer(A, RecordIs(1, KEY, (BLOCK,), None)) == (None, [])
    assert desk.answer(B, RecordIs(1, KEY, (BLOCK,), None)) == (
        Gathered(1, (BLOCK,), 2),
        [CancelTimer(DUE)],
    )


def test_with_nobody_to_ask_there_is_nothing_to_wait_for() -> None:
    assert Desk().ask() == (Gathered(1, (), 0), [])


def test_who_is_late_or_gone_is_not_waited_for() -> None:
    desk = Desk()
    desk.ask(A, B, C)
    assert desk.answer(A, RecordIs(1, KEY, (), None)) == (None, [])
    assert desk.asking.handle_link_down(B) == []
    assert desk.out.take() == []
    assert desk.asking.handle_timeout(DUE) == Gathered(1, (), 1)
    assert desk.out.take() == [
        Record(Kind.DROPPED, peer=C, reason=Reason.TIMEOUT, note="a question for a record"),
        CancelTimer(DUE),
    ]
    stale = Record(Kind.REJECTED, peer=C, reason=Reason.STALE, note="an answer nobody waits for")
    assert desk.answer(C, RecordIs(1, KEY, (BLOCK,), None)) == (None, [stale])
    assert desk.asking.handle_timeout(DUE) is None
    assert desk.out.take() == []


def test_the_last_of_those_who_were_asked_ends_it_by_going() -> None:
    desk = Desk()
    desk.ask(A, B)
    desk.ask(B)
    desk.answer(A, RecordIs(1, KEY, (BLOCK,), None))
    assert desk.asking.handle_link_down(B) == [Gathered(1, (BLOCK,), 1), Gathered(2, (), 0)]
    assert desk.out.take() == [CancelTimer(AskDue(1)), CancelTimer(AskDue(2))]


def test_answers_to_what_was_not_asked_are_rejected() -> None:
    desk = Desk()
    desk.ask(A)
    for peer, answer in ((B, RecordIs(1, KEY, (), None)), (A, RecordIs(1, bytes(32), (), None))):
        ended, (record,) = desk.answer(peer, answer)
        assert ended is None
        assert isinstance(record, Record)
        assert (record.peer, record.reason) == (peer, Reason.STALE)


def test_blocks_that_are_none_are_blamed_and_left_out() -> None:
    desk = Desk()
    desk.ask(A)
    assert desk.answer(A, RecordIs(1, KEY, (replace(BLOCK, version=1), BLOCK), None)) == (
        Gathered(1, (BLOCK,), 1),
        [
            Record(Kind.REJECTED, peer=A, reason=Reason.BAD_SIGNATURE, note="a record"),
            Blame(A, Reason.BAD_SIGNATURE),
            CancelTimer(DUE),
        ],
    )


def test_a_refusal_is_no_answer() -> None:
    desk = Desk()
    desk.ask(A)
    note = "a question for a record was refused"
    assert desk.answer(A, RecordIs(1, KEY, (), Reason.FLOODING)) == (
        Gathered(1, (), 0),
        [Record(Kind.REJECTED, peer=A, reason=Reason.FLOODING, note=note), CancelTimer(DUE)],
    )


PEER, OTHER = PeerId(b"p" * 32), PeerId(b"o" * 32)


class Server:
    """The serving side, and its outbox."""

    def __init__(self, config: NamesConfig = CONFIG) -> None:
        self._out = Outbox()
        self._serving = BlockServer(BlockShelf(MemoryStore().cells, config), config, self._out)

    def put(self, peer: PeerId, message: PutRecord, now: float) -> list[Effect]:
        self._serving.handle_put(peer, message, now)
        return self._out.take()

    def ask(self, peer: PeerId, message: AskRecord, now: float) -> list[Effect]:
        self._serving.handle_question(peer, message, now)
        return self._out.take()


def test_what_is_promised_is_written_first_and_then_handed_out() -> None:
    node = Server()
    assert node.put(PEER, PutRecord(7, BLOCK), NOW) == [AfterCommit((Send(PEER, PutAnswer(7, None)),))]
    assert node.ask(OTHER, AskRecord(8, BLOCK.lookup), NOW) == [
        Send(OTHER, RecordIs(8, BLOCK.lookup, (BLOCK,), None))
    ]
    nothing = bytes(32)
    assert node.ask(OTHER, AskRecord(9, nothing), NOW) == [Send(OTHER, RecordIs(9, nothing, (), None))]


def test_what_is_refused_has_a_reason_and_a_record_and_forging_is_blamed() -> None:
    node = Server()
    size, note = len(BLOCK.sealed), "a record to keep"
    assert node.put(PEER, PutRecord(7, BLOCK), NOW + DAY) == [
        Record(Kind.REJECTED, peer=PEER, bytes=size, reason=Reason.STALE, note=note),
        Send(PEER, PutAnswer(7, Reason.STALE)),
    ]
    assert node.put(PEER, PutRecord(8, replace(BLOCK, expires=BLOCK.expires + 1)), NOW) == [
        Record(Kind.REJECTED, peer=PEER, bytes=size, reason=Reason.BAD_SIGNATURE, note=note),
        Send(PEER, PutAnswer(8, Reason.BAD_SIGNATURE)),
        Blame(PEER, Reason.BAD_SIGNATURE),
    ]


def test_one_peer_asks_so_much_and_no_more() -> None:
    node = Server(NamesConfig(burst=2.0, rate=1.0))
    ask = AskRecord(1, BLOCK.lookup)
    answered = Send(PEER, RecordIs(1, BLOCK.lookup, (), None))
    assert [node.ask(PEER, ask, NOW) for _ in range(2)] == [[answered]] * 2
    assert node.ask(PEER, ask, NOW) == [
        Record(Kind.REJECTED, peer=PEER, reason=Reason.FLOODING, note="a question for a record"),
        Send(PEER, RecordIs(1, BLOCK.lookup, (), Reason.FLOODING)),
    ]
    assert node.ask(PEER, ask, NOW + 1) == [answered]
    assert node.ask(OTHER, ask, NOW) == [Send(OTHER, RecordIs(1, BLOCK.lookup, (), None))]
    for request in (1, 2):
        node.put(PEER, PutRecord(request, BLOCK), NOW)
    assert node.put(PEER, PutRecord(3, BLOCK), NOW)[1] == Send(PEER, PutAnswer(3, Reason.FLOODING))


def test_a_node_that_does_not_serve_says_so() -> None:
    node = Server(NamesConfig(serve=False))
    assert node.put(PEER, PutRecord(7, BLOCK), NOW)[1] == Send(PEER, PutAnswer(7, Reason.UNSUPPORTED))
    assert node.ask(PEER, AskRecord(7, BLOCK.lookup), NOW)[1] == Send(
        PEER, RecordIs(7, BLOCK.lookup, (), Reason.UNSUPPORTED)
    )
