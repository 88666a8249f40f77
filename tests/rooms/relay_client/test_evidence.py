"""The statements of relays that a member keeps and compares, and what they prove."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise

import pytest
from msgspec.structs import replace
from tests.rooms.chronicle import person
from tests.rooms.circle import Circle

from linnet.core.effects import AfterCommit, Blame, Send, SetTimer
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import RelayFaulty
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Effect, Notice, Outbox
from linnet.rooms.commands import AddRelay, Sent
from linnet.rooms.config import RoomsConfig
from linnet.rooms.guests import Guest
from linnet.rooms.messages import ASKED, SHOWN, AskStatements, RelayProof, StatementsAre
from linnet.rooms.relay_client.evidence import (
    STATEMENTS,
    UNSHOWN,
    CompareDue,
    Evidence,
    FaultFound,
    SpreadFault,
)
from linnet.rooms.relay_statements import (
    HeldEvent,
    Line,
    Reach,
    RelayFault,
    RelayStatement,
    sign_statement,
)
from linnet.store.memory import MemoryStore
from linnet.trace.records import Record

ROOM = TopicId(sha256(b"a room").digest())
KEY = SigningKey(bytes(32))
RELAY = PeerId(KEY.public)
CONFIG = RoomsConfig(relay_timeout=5.0, announce_period=30.0)
ANN, BOB = PeerId(b"a" * 32), PeerId(b"b" * 32)
BEN = person("ben").author


def event(number: int) -> EventId:
    return EventId(sha256(b"event %d" % number).digest())


def said(
    *held: int,
    reach: tuple[int, int] | None = None,
    count: int = 10,
    line: bytes = b"line one",
    past: tuple[Line, ...] = (),
    digest: bytes = bytes(32),
    key: SigningKey = KEY,
    room: TopicId = ROOM,
) -> RelayStatement:
    """Event n is at position n."""
    shown = None if reach is None else Reach(*reach, 0, ())
    events = tuple(HeldEvent(event(number), number, False) for number in held)
    return sign_statement(
        key, room, RelayStatement(line, count, digest, past, 0, events, (), shown, bytes(64))
    )


class Member:
    """One member's evidence, over a store that outlives it."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.boot()

    def boot(self) -> None:
        self.out = Outbox()
        self.evidence = Evidence(ROOM, CONFIG, self.store.cells, self.out)

    def hear(self, *statements: RelayStatement, now: float = 0.0) -> None:
        for statement in statements:
            self.evidence.note_statement(RELAY, statement, now)

    def found(self) -> list[Reason]:
        """The faults that were found since the last look."""
        taken = self.out.take_said()
        return [each.reason for each in taken if isinstance(each, FaultFound)]

    def effects(self) -> list[Effect]:
        return [each for each in self.out.take_said() if not isinstance(each, Notice)]


def guest(name: str, compares: bool = True, relay: bool = False) -> Guest:
    return Guest(person(name).card, relay, compares=compares)


def sent(effects: list[Effect]) -> list[Send[object]]:
    inner = [each.effects if isinstance(each, AfterCommit) else (each,) for each in effects]
    return [each for group in inner for each in group if isinstance(each, Send)]


def test_a_page_that_hides_what_was_signed_as_taken_is_a_proof_in_either_order_and_told_once() -> None:
    for first, second in ((said(7), said(6, reach=(5, 9))), (said(6, reach=(5, 9)), said(7))):
        member = Member()
        member.hear(first)
        member.evidence._asked[ANN] = {RELAY: None}
        member.evidence.handle_answer(ANN, StatementsAre(ROOM, RELAY, (second,)), 3.0)
        assert member.found() == [Reason.WITHHELD]
        kept = member.evidence.fault_of(RELAY)
        assert kept is not None
        assert (kept.reason, kept.event, kept.at) == (Reason.WITHHELD, event(7), 3.0)
        member.evidence._asked[ANN] = {RELAY: None}
        member.evidence.handle_answer(ANN, StatementsAre(ROOM, RELAY, (second,)), 4.0)
        assert member.found() == []


def test_statements_and_proofs_outlive_a_restart() -> None:
    member = Member()
    member.hear(said(7))
    member.boot()
    assert [each.held[0].event for each in member.evidence.statements(RELAY)] == [event(7)]
    member.hear(said(6, reach=(5, 9)))
    assert member.found() == [Reason.WITHHELD]
    member.boot()
    assert member.evidence.is_caught(RELAY)
    member.hear(said(reach=(5, 9)))
    assert member.found() == []  # It was told before.


def test_only_so_many_statements_are_kept_and_the_oldest_go() -> None:
    member = Member()
    member.hear(*(said(number, count=number) for number in range(1, STATEMENTS + 11)))
    kept = [each.held[0].event for each in member.evidence.statements(RELAY)]
    assert kept == [event(number) for number in range(11, STATEMENTS + 11)]
    member.boot()
    assert len(list(member.evidence.statements(RELAY))) == STATEMENTS
    assert sum(1 for _ in member.store.cells.scan(f"relay.said/{ROOM.hex()}")) == STATEMENTS


def test_a_quiet_page_replaces_the_one_that_it_covers_and_no_other() -> None:
    member = Member()
    member.hear(said(7, reach=(5, 9)), said(reach=(9, 12)), said(reach=(9, 15)))
    reaches = [
        each.reach and (each.reach.after, each.reach.upto) for each in member.evidence.statements(RELAY)
    ]
    assert reaches == [(5, 9), (9, 15)]
    member.hear(said(reach=(15, 20)))
    assert len(list(member.evidence.statements(RELAY))) == 3


@pytest.mark.parametrize("forged", ["another key", "another room", "changed"])
def test_a_statement_that_the_relay_did_not_sign_is_refused_and_blamed(forged: str) -> None:
    statement = {
        "another key": said(7, key=SigningKey(b"x" * 32)),
        "another room": said(7, room=TopicId(bytes(32))),
        "changed": replace(said(7), count=11),
    }[forged]
    member = Member()
    member.hear(statement)
    assert list(member.evidence.statements(RELAY)) == []
    assert Blame(RELAY, Reason.BAD_SIGNATURE) in member.effects()


def test_what_a_relay_does_not_show_is_asked_about_after_a_while_and_three_times_at_most() -> None:
    member = Member()
    member.hear(said(reach=(0, 5)))
    member.evidence.note_event(event(7), BEN, [RELAY], None, 10.0)
    assert SetTimer(CONFIG.relay_timeout, CompareDue(ROOM)) in member.effects()
    guests = {ANN: guest("ann"), BOB: guest("ben")}
    member.evidence.handle_timer(guests, 12.0)
    assert sent(member.effects()) == []  # The relay may still show it.
    for now in (15.0, 45.0, 75.0):
        member.evidence.handle_timer(guests, now)
        asked = [(each.peer, each.message) for each in sent(member.effects())]
        question = AskStatements(ROOM, RELAY, (event(7),))
        assert asked == [(BOB, question), (ANN, question)]  # Its author first.
    member.evidence.handle_timer(guests, 105.0)
    assert member.effects() == []


def test_only_members_that_understand_it_are_asked() -> None:
    member = Member()
    member.hear(said(reach=(0, 5)))
    member.evidence.note_event(event(7), BEN, [RELAY], None, 0.0)
    member.effects()
    member.evidence.handle_timer({ANN: guest("ann", compares=False), BOB: guest("ben", relay=True)}, 60.0)
    assert member.effects() == []
    # It is asked about once somebody comes who does, also after a restart.
    member.boot()
    member.evidence.greet(ANN, ())
    assert SetTimer(CONFIG.relay_timeout, CompareDue(ROOM)) in member.effects()
    member.evidence.handle_timer({ANN: guest("ann")}, 70.0)
    assert len(sent(member.effects())) == 1


def test_what_a_relay_shows_is_not_asked_about() -> None:
    member = Member()
    member.hear(said(reach=(0, 5)))
    member.evidence.note_event(event(7), BEN, [RELAY], None, 0.0)
    member.evidence.note_event(event(8), BEN, [RELAY], RELAY, 0.0)
    member.hear(said(7, reach=(5, 9)))
    member.effects()
    member.evidence.handle_timer({ANN: guest("ann")}, 60.0)
    assert member.effects() == []


def test_the_events_that_are_asked_about_are_bounded() -> None:
    member = Member()
    member.hear(said(reach=(0, 5)))
    for number in range(UNSHOWN + 50):
        member.evidence.note_event(event(number), BEN, [RELAY], None, 0.0)
    member.evidence.handle_timer({ANN: guest("ann")}, 60.0)
    (question,) = [each.message for each in sent(member.effects())]
    assert isinstance(question, AskStatements)
    assert question.events == tuple(event(number) for number in range(50, 50 + ASKED))
    assert sum(1 for _ in member.store.cells.scan(f"relay.unshown/{ROOM.hex()}")) == UNSHOWN


def test_a_question_is_answered_with_the_last_few_statements_that_say_it() -> None:
    member = Member()
    member.hear(*(said(7, number, count=number) for number in range(10, 20)), said(3))
    member.effects()
    member.evidence.handle_question(ANN, AskStatements(ROOM, RELAY, (event(7), event(99))))
    (answer,) = [each.message for each in sent(member.effects())]
    assert isinstance(answer, StatementsAre)
    assert [each.count for each in answer.statements] == [16, 17, 18, 19][-SHOWN:]
    member.evidence.handle_question(ANN, AskStatements(ROOM, BOB, (event(7),)))
    assert [each.message for each in sent(member.effects())] == [StatementsAre(ROOM, BOB, ())]


def test_an_answer_that_nobody_asked_for_is_not_looked_at() -> None:
    member = Member()
    member.hear(said(6, reach=(5, 9)))
    member.effects()
    member.evidence.handle_answer(ANN, StatementsAre(ROOM, RELAY, (said(7),)), 0.0)
    (record,) = member.effects()
    assert isinstance(record, Record)
    assert record.reason is Reason.STALE
    assert member.evidence.fault_of(RELAY) is None


def test_a_proof_of_another_is_checked_told_and_passed_on_once() -> None:
    member = Member()
    proof = RelayProof(ROOM, RELAY, RelayFault(said(7), said(6, reach=(5, 9))))
    member.evidence.handle_proof(ANN, proof, True, 1.0)
    notices = [each for each in member.out.take_said() if isinstance(each, FaultFound | SpreadFault)]
    assert notices == [FaultFound(RELAY, Reason.WITHHELD, event(7)), SpreadFault(ANN, proof)]
    member.evidence.handle_proof(BOB, proof, True, 2.0)
    assert list(member.out.take_said()) == []
    member.evidence.greet(BOB, [RELAY])
    assert [each.message for each in sent(member.effects())] == [proof]
    member.evidence.greet(BOB, [])
    assert sent(member.effects()) == []


@pytest.mark.parametrize("false", ["agrees", "forged first", "forged second"])
def test_a_false_proof_is_blamed_on_who_sent_it(false: str) -> None:
    other = SigningKey(b"x" * 32)
    fault = {
        "agrees": RelayFault(said(7), said(7, reach=(5, 9))),
        "forged first": RelayFault(said(7, key=other), said(6, reach=(5, 9))),
        "forged second": RelayFault(said(7), said(6, reach=(5, 9), key=other)),
    }[false]
    member = Member()
    member.evidence.handle_proof(ANN, RelayProof(ROOM, RELAY, fault), True, 1.0)
    reason = Reason.MALFORMED if false == "agrees" else Reason.BAD_SIGNATURE
    assert Blame(ANN, reason) in member.effects()
    assert member.evidence.fault_of(RELAY) is None


def test_a_proof_against_a_key_that_is_no_relay_takes_no_room() -> None:
    member = Member()
    fault = RelayFault(said(7), said(6, reach=(5, 9)))
    member.evidence.handle_proof(ANN, RelayProof(ROOM, RELAY, fault), False, 1.0)
    (record,) = member.effects()
    assert isinstance(record, Record)
    assert record.reason is Reason.NOT_A_RELAY
    assert member.evidence.fault_of(RELAY) is None


def test_an_old_answer_is_asked_for_again_before_it_counts() -> None:
    member = Member()
    member.hear(said(7, count=20))
    old = said(reach=(0, 5), count=10)
    assert member.evidence.is_behind(RELAY, old, 1.0)
    assert not member.evidence.is_behind(RELAY, said(7, reach=(0, 9), count=20), 2.0)
    assert member.evidence.is_behind(RELAY, old, 3.0)
    assert member.found() == []
    assert not member.evidence.is_behind(RELAY, old, 4.0)
    assert member.found() == [Reason.STALE]
    assert member.evidence.is_caught(RELAY)
    assert not member.evidence.is_behind(RELAY, said(count=10, line=b"line two"), 5.0)


def test_a_relay_that_begins_anew_is_counted_and_one_that_goes_on_is_not() -> None:
    member = Member()
    member.hear(said(7, count=20))
    member.hear(said(8, count=21, line=b"line two", past=(Line(b"line one", 20),)))
    assert member.evidence.times_anew(RELAY) == 0
    member.hear(said(9, line=b"line abc"))
    assert (member.evidence.times_anew(RELAY), member.found()) == (1, [])
    # Others were signed something that does not go on from that: perhaps it is two relays with one key.
    member.evidence._asked[ANN] = {RELAY: None}
    member.evidence.handle_answer(ANN, StatementsAre(ROOM, RELAY, (said(5, line=b"line xyz"),)), 0.0)
    assert (member.evidence.times_anew(RELAY), member.found()) == (2, [])


def test_a_loss_is_told_and_the_relay_is_still_used_as_others_are() -> None:
    member = Member()
    member.hear(said(7, count=20), said(8, line=b"line two", past=(Line(b"line one", 19),)))
    assert member.found() == [Reason.LOST]
    assert not member.evidence.is_caught(RELAY)


def test_hours_of_quiet_leave_one_statement_that_covers_them() -> None:
    circle = Circle("ann", "bob", "r0")
    circle.found("ann", "bob")
    circle.get("ann", AddRelay(circle.room, circle.contact("r0")), Sent)
    circle.run(10.0)
    circle.say("ann", "hello")
    circle.run(3600.0)
    evidence, relay = circle.room_at("bob").evidence, circle.peer("r0")
    kept = list(evidence.statements(relay))
    assert len(kept) < 20
    reaches = sorted((each.reach.after, each.reach.upto) for each in kept if each.reach is not None)
    assert all(begin <= end for (_, end), (begin, _) in pairwise(reaches))
    assert reaches[0][0] == 0
    assert evidence.fault_of(relay) is None
    assert not [item for item in circle.items["bob"] if isinstance(item, RelayFaulty)]
