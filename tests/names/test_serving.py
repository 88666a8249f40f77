"""What a node keeps and hands out for others, and where that ends."""

from __future__ import annotations

from msgspec.structs import replace
from tests.names.people import CONFIG, DAY, NOW, PLACE_C, Z, place, zone_of

from linnet.core.effects import AfterCommit, Blame, Send
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Effect, Outbox
from linnet.names.config import NamesConfig
from linnet.names.messages import AskRecord, PutAnswer, PutRecord, RecordIs
from linnet.names.serving import Serving
from linnet.names.store import Shelf
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

PEER, OTHER = PeerId(b"p" * 32), PeerId(b"o" * 32)
BLOCK = zone_of("alice").publish("music", place(PLACE_C, Z), DAY, NOW).block


class Server:
    """The serving side, and its outbox."""

    def __init__(self, config: NamesConfig = CONFIG) -> None:
        self._out = Outbox()
        self._serving = Serving(Shelf(MemoryStore().cells, config), config, self._out)

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
