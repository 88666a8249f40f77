"""One answer to each request, after the commit, and what else one input leads to."""

from __future__ import annotations

from tests.rooms.chronicle import person
from tests.rooms.relay.scenes import World, peer_of

from linnet.core.effects import AfterCommit, Blame, Send
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.rooms.messages import RelayCursor, RelayOutcome, RelayTaken
from linnet.rooms.relay.access_control import Caller
from linnet.rooms.relay.ingest import NO_EVENT, Answers, Origin, Turn
from linnet.trace.records import Kind, Record

ONE, TWO = (RelayOutcome(EventId(each * 32), None, Reason.BANNED, ()) for each in (b"1", b"2"))
WORLD = World()
ROOM, HELLO = WORLD.room, WORLD.say("ann")
ANN = Caller(peer_of("ann"), person("ann").author)
CURSOR = RelayCursor(b"epoch..1", 5)


def test_the_last_outcome_completes_the_answer() -> None:
    answers = Answers(ROOM)
    assert answers.open_request(ANN, 7, 2) is None
    origin = Origin(ANN, False, 7)
    assert answers.settle_event(origin, ONE) is None
    assert len(answers._open) == 1
    assert answers.settle_event(origin, TWO) == RelayTaken(ROOM, 7, (ONE, TWO), None)
    assert (len(answers._open), answers.settle_event(origin, TWO)) == (0, None)


def test_nothing_is_answered_at_once_and_what_was_fetched_never() -> None:
    answers = Answers(ROOM)
    assert answers.open_request(ANN, 7, 0) == RelayTaken(ROOM, 7, (), None)
    assert answers.settle_event(Origin(ANN, False, None), ONE) is None


def test_requests_of_one_peer_by_two_ways_are_two() -> None:
    answers = Answers(ROOM)
    other = ANN._replace(linked=False)
    answers.open_request(ANN, 7, 2)
    answers.open_request(other, 7, 1)
    assert answers.settle_event(Origin(other, False, 7), ONE) == RelayTaken(ROOM, 7, (ONE,), None)


def test_a_link_that_ends_waits_for_nothing() -> None:
    answers = Answers(ROOM)
    answers.open_request(ANN, 7, 1)
    answers.handle_link_down(ANN.peer)
    assert len(answers._open) == 0


def begun(caller: Caller, events: int, out: Outbox) -> tuple[Turn, Origin]:
    answers = Answers(ROOM)
    answers.open_request(caller, 9, events)
    return Turn(ROOM, answers, out), Origin(caller, False, 9)


def test_answers_come_after_the_commit() -> None:
    out = Outbox()
    turn, origin = begun(ANN, 1, out)
    turn.tell_outcome([origin], HELLO.id, CURSOR, None)
    taken = RelayTaken(ROOM, 9, (RelayOutcome(HELLO.id, CURSOR, None, ()),), None)
    assert out.take() == []
    turn.finish()
    assert out.take() == [AfterCommit((Send(ANN.peer, taken),))]
    turn.finish()
    assert out.take() == []


def test_a_refusal_is_recorded_and_a_forger_blamed() -> None:
    out = Outbox()
    turn, origin = begun(ANN, 3, out)
    many = tuple(EventId(bytes([number]) * 32) for number in range(40))
    turn.refuse_event([origin], HELLO, Reason.MISSING_DEPENDENCY, many)
    turn.refuse_event([origin], HELLO, Reason.BAD_SIGNATURE, note="why")
    turn.refuse_event([origin], None, Reason.MALFORMED)
    place = (ROOM, HELLO.id, HELLO.device, HELLO.seq)
    missing = Reason.MISSING_DEPENDENCY
    assert out.take() == [
        Record(Kind.REJECTED, *place, peer=ANN.peer, reason=missing, note="message"),
        Record(Kind.REJECTED, *place, peer=ANN.peer, reason=Reason.BAD_SIGNATURE, note="why"),
        Blame(ANN.peer, Reason.BAD_SIGNATURE),
        Record(Kind.REJECTED, ROOM, peer=ANN.peer, reason=Reason.MALFORMED),
        Blame(ANN.peer, Reason.MALFORMED),
    ]
    turn.finish()
    (promise,) = out.take()
    assert isinstance(promise, AfterCommit)
    (send,) = promise.effects
    assert isinstance(send, Send)
    assert isinstance(send.message, RelayTaken)
    assert [(each.event, len(each.missing)) for each in send.message.outcomes] == [
        (HELLO.id, 32),
        (HELLO.id, 0),
        (NO_EVENT, 0),
    ]
