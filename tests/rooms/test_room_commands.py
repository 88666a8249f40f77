"""Commands: each answered once, and refused for a reason."""

from __future__ import annotations

import pytest
from tests.rooms.bench import Bench, Effects
from tests.rooms.circle import Circle

from linnet.core.effects import Dial, Reply, SetTimer
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.limits import BODY_BYTES
from linnet.core.reasons import Reason
from linnet.machine.commands import Declined
from linnet.peer.interface import AnyCommand, Stop
from linnet.rooms.commands import (
    AddRelay,
    CreateRoom,
    ExamineLedger,
    ExamineRelay,
    ExamineRooms,
    ExamineState,
    JoinRoom,
    LeaveRoom,
    LedgerIs,
    MakeTicket,
    Reading,
    ReadRoom,
    RoomMade,
    RoomsAre,
    SendToRoom,
    Sent,
    SetMembership,
)
from linnet.rooms.event_types import CREATORS, Membership
from linnet.rooms.join import JoinEndDue
from linnet.rooms.messages import AskControl, RelayAnswer, RelayAsk, RelayOutcome, RelayTaken
from linnet.rooms.relay_client.roster import RelayAnswerDue

ELSEWHERE = TopicId(b"o" * 32)
CONTACT = Contact(PeerId(b"p" * 32), ("tls://p:1",))
EVENT = EventId(b"e" * 32)


def reason(bench: Bench, command: AnyCommand) -> Reason | None:
    answer = bench.ask(command)
    return answer.reason if isinstance(answer, Declined) else None


@pytest.mark.parametrize(
    "command",
    [
        SendToRoom(ELSEWHERE, (b"x",)),
        MakeTicket(ELSEWHERE, 1),
        AddRelay(ELSEWHERE, CONTACT),
        ReadRoom(7, ELSEWHERE),
        ExamineState(ELSEWHERE),
        ExamineLedger(ELSEWHERE),
        LeaveRoom(ELSEWHERE),
        SetMembership(ELSEWHERE, b"p" * 32, Membership.BAN),  # type: ignore[arg-type]
    ],
    ids=lambda command: type(command).__name__,
)
def test_a_room_that_is_not_ours(command: AnyCommand) -> None:
    assert reason(Bench(), command) is Reason.UNKNOWN_ROOM


def test_what_breaks_a_limit_leaves_nothing_behind() -> None:
    """Neither a room that is half founded nor the first of several messages."""
    bench = Bench()
    too_large = "x" * (BODY_BYTES + 1)
    assert reason(bench, CreateRoom(too_large)) is Reason.TOO_LARGE
    many = tuple(bench.who(f"creator {number}").author for number in range(CREATORS + 1))
    assert reason(bench, CreateRoom("tea", creators=many)) is Reason.TOO_MANY
    rooms = bench.ask(ExamineRooms())
    assert isinstance(rooms, RoomsAre)
    assert [room.room for room in rooms.rooms] == [bench.id]
    before = len(bench.room.dag)
    assert reason(bench, SendToRoom(bench.id, (b"fine", too_large.encode()))) is Reason.TOO_LARGE
    assert len(bench.room.dag) == before
    bench.restart()
    assert len(bench.room.dag) == before


def test_nobody_joins_without_asking_someone_or_twice() -> None:
    bench = Bench()
    assert reason(bench, JoinRoom(bench.id, None, ())) is Reason.IN_USE
    assert reason(bench, JoinRoom(ELSEWHERE, None, ())) is Reason.NO_ADDRESS
    assert bench.ask(JoinRoom(ELSEWHERE, None, (CONTACT,))) is None
    assert reason(bench, JoinRoom(ELSEWHERE, None, (CONTACT,))) is Reason.IN_USE


def test_an_invitation_to_a_room_that_we_are_in_tells_where_others_are_now() -> None:
    bench = Bench()
    assert bench.ask(JoinRoom(bench.id, None, (CONTACT,))) == RoomMade(bench.id, EventId(bytes(32)), 1)
    assert CONTACT.peer in bench.room.neighbors._mesh.held_peers
    without = Contact(CONTACT.peer)
    assert reason(bench, JoinRoom(bench.id, None, (without,))) is Reason.IN_USE


def test_the_ledger_is_told_of_one_event_or_of_the_newest() -> None:
    bench = Bench("bob")
    ids = bench.say(SendToRoom(bench.id, (b"one", b"two", b"three")))
    newest, one = bench.ask(ExamineLedger(bench.id, None, 2)), bench.ask(ExamineLedger(bench.id, ids[0]))
    assert isinstance(newest, LedgerIs)
    assert isinstance(one, LedgerIs)
    assert [each.event for each in newest.events] == [ids[2], ids[1]]
    assert [each.event for each in one.events] == [ids[0]]
    assert reason(bench, ExamineLedger(bench.id, EVENT)) is Reason.UNKNOWN


def test_a_subscription_has_a_number_of_its_own() -> None:
    bench = Bench()
    assert reason(bench, ReadRoom(1, bench.id)) is Reason.IN_USE
    assert bench.ask(ReadRoom(2, bench.id)) == Reading(bench.id, False)


def test_a_join_that_nobody_answers_is_declined_after_its_time() -> None:
    bench = Bench()
    effects = bench.asked(JoinRoom(ELSEWHERE, None, (CONTACT,), 20.0))
    assert SetTimer(20.0, JoinEndDue(ELSEWHERE)) in effects
    effects = bench.fire(JoinEndDue(ELSEWHERE))
    (reply,) = [each for each in effects if isinstance(each, Reply)]
    assert isinstance(reply.result, Declined)
    assert reply.result.reason is Reason.TIMEOUT
    assert bench.fire(JoinEndDue(ELSEWHERE)) == []


def test_a_node_that_stops_answers_whoever_waits() -> None:
    bench = Bench()
    bench.ask(JoinRoom(ELSEWHERE, None, (CONTACT,)))
    bench.ask(AddRelay(bench.id, CONTACT))
    effects = bench.asked(Stop())
    declined = [
        each.result for each in effects if isinstance(each, Reply) and isinstance(each.result, Declined)
    ]
    assert len(declined) == 2


def test_a_relay_is_asked_once_and_named_by_its_own_card() -> None:
    bench = Bench()
    bench.up("rex")
    rex = bench.who("rex")
    contact = Contact(rex.peer, ("tls://rex:1",))
    effects = bench.asked(AddRelay(bench.id, contact))
    (ask,) = bench.sent("rex", RelayAsk, effects)
    assert reason(bench, AddRelay(bench.id, contact)) is Reason.IN_USE
    effects = bench.hear("rex", RelayAnswer(bench.id, ask.request, None, rex.author, rex.card))
    (reply,) = [each for each in effects if isinstance(each, Reply)]
    assert isinstance(reply.result, Sent)
    assert bench.room.view.is_relay(rex.peer)
    assert reason(bench, AddRelay(bench.id, contact)) is Reason.IN_USE


def test_an_invitation_tells_where_a_relay_of_the_room_is_now() -> None:
    bench = Bench()
    bench.up("rex")
    rex = bench.who("rex")
    effects = bench.asked(AddRelay(bench.id, Contact(rex.peer, ("tls://rex:1",))))
    (ask,) = bench.sent("rex", RelayAsk, effects)
    bench.hear("rex", RelayAnswer(bench.id, ask.request, None, rex.author, rex.card))
    bench.down("rex")
    effects = bench.asked(JoinRoom(bench.id, None, (Contact(rex.peer, ("tls://rex:2",)),)))
    assert [each.hints[0] for each in effects if isinstance(each, Dial)] == ["tls://rex:2"]


@pytest.mark.parametrize("lie", ["no card", "another's card", "another person"])
def test_a_relay_cannot_have_somebody_else_silenced(lie: str) -> None:
    """Whoever is named as a relay's person may say nothing but its own membership."""
    bench = Bench("bob")
    bench.up("rex")
    rex, bob = bench.who("rex"), bench.who("bob")
    bench.ask(AddRelay(bench.id, Contact(rex.peer, ())))
    answers = {
        "no card": RelayAnswer(bench.id, 1, None, bob.author),
        "another's card": RelayAnswer(bench.id, 1, None, bob.author, bob.card),
        "another person": RelayAnswer(bench.id, 1, None, bob.author, rex.card),
    }
    effects = bench.hear("rex", answers[lie])
    (reply,) = [each for each in effects if isinstance(each, Reply)]
    assert isinstance(reply.result, Declined)
    assert not bench.room.view.is_relay_person(bob.author)


def test_a_relay_that_does_not_answer_or_says_no() -> None:
    bench = Bench()
    rex = bench.who("rex")
    bench.ask(AddRelay(bench.id, Contact(rex.peer, ())))
    effects = bench.fire(RelayAnswerDue(bench.id, rex.peer))
    assert reasons(effects) == [Reason.TIMEOUT]
    bench.up("rex")
    bench.ask(AddRelay(bench.id, Contact(rex.peer, ())))
    effects = bench.hear("rex", RelayAnswer(bench.id, 1, Reason.QUOTA, rex.author))
    assert reasons(effects) == [Reason.QUOTA]


def test_who_is_no_relay_says_so() -> None:
    assert reason(Bench(), ExamineRelay()) is Reason.NOT_A_RELAY


def test_a_join_that_is_refused_leaves_no_room_behind() -> None:
    """The inviter was put out meanwhile: whoever shows the room does not take the join."""
    circle = Circle("ann", "bob", "cid")
    circle.found("ann", "bob")
    made = circle.ticket("bob")
    circle.get("ann", SetMembership(circle.room, circle.person("bob"), Membership.BAN), Sent)
    circle.run(1.0)
    contacts = (circle.contact("ann"),)
    declined = circle.declined("cid", JoinRoom(circle.room, made.ticket, contacts, 5.0))
    assert declined.reason is Reason.NOT_INVITED
    rooms = circle.get("cid", ExamineRooms(), RoomsAre).rooms
    assert rooms == ()
    circle.join("cid", by="ann")


def test_a_relay_that_does_not_take_our_join_ends_it() -> None:
    bench = Bench()
    bench.up("rex")
    rex = bench.who("rex")
    joining = bench.rooms.joins.by_room
    effects = bench.asked(JoinRoom(ELSEWHERE, None, (Contact(rex.peer, ()),)))
    assert len(bench.sent("rex", AskControl, effects)) == 1
    attempt = joining[ELSEWHERE]
    attempt.joined, attempt.answering = EVENT, rex.peer
    missing = RelayOutcome(EVENT, None, Reason.MISSING_DEPENDENCY, (EVENT,))
    refused = RelayOutcome(EVENT, None, Reason.BANNED, ())
    bench.hear("rex", RelayTaken(ELSEWHERE, 1, (missing,), None))
    assert ELSEWHERE in joining
    effects = bench.hear("rex", RelayTaken(ELSEWHERE, 1, (refused,), None))
    assert reasons(effects) == [Reason.BANNED]
    assert joining == {}


def reasons(effects: Effects) -> list[Reason]:
    """Why commands were declined."""
    results = [each.result for each in effects if isinstance(each, Reply)]
    return [result.reason for result in results if isinstance(result, Declined)]
