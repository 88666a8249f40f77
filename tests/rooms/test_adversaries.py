"""People who are none of a room, against members and relays of it: they get nothing and leave nothing.

Each is answered by name, hears exactly what the test says, and changes nothing of the room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from msgspec.structs import replace
from tests.rooms.intruder import Pen, events_of
from tests.rooms.siege import Siege

from linnet.core.ids import EventId, TopicId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.messages import Beyond, Bound, Further, Given, Range, Reconcile, Want
from linnet.delivery.set_reconciliation import END
from linnet.event.event import Verified
from linnet.peer.config import Identity
from linnet.rooms.attachments import piece_of
from linnet.rooms.commands import KeepChunk, SetLevel, SetMembership
from linnet.rooms.config import RelayConfig, RelayPolicy
from linnet.rooms.event_types import MEMBER, Member, Membership, member_key
from linnet.rooms.invitations import Ticket, issue_ticket
from linnet.rooms.messages import (
    AskControl,
    ChunkIs,
    ChunkPut,
    ChunkTaken,
    ChunkWant,
    ControlPage,
    Refused,
    RelayAnswer,
    RelayAsk,
    RelayCursor,
    RelayForward,
    RelayOutcome,
    RelaySend,
    RelayTaken,
    Resync,
    ResyncPage,
)
from linnet.rooms.receipts import sign_room_receipt
from linnet.sim.seeded_random import seeded_identity
from linnet.trace.records import Kind

PIECE = b"a piece of a picture"
NOBODY = EventId(b"x" * 32)
MINE = b"mine"
CURSOR = RelayCursor(bytes(8), 1)
FORGED = RelayOutcome(NOBODY, CURSOR, None, ())


class Stage(NamedTuple):
    """A room that has begun, and a stranger with links to ann and to the relay."""

    siege: Siege
    pen: Pen
    known: tuple[EventId, ...]
    """Every event of the room: what a guesser cannot have, and one who left may."""

    @property
    def stranger(self) -> Identity:
        return self.pen.identity

    def message(self, *control: EventId) -> Verified:
        return self.pen.message("let me in", control or self.siege.control(), fork=True)

    def join(self, ticket: Ticket | None = None) -> Verified:
        return self.pen.member(self.stranger, Membership.JOIN, self.siege.control(), ticket, fork=True)


@pytest.fixture(scope="module")
def stage() -> Stage:
    siege = Siege("ann", "bob", "cid", "r0", seed=3)
    siege.found("ann", "bob", "cid", "r0")
    siege.say("ann", "hello")
    siege.ask("ann", KeepChunk(siege.room, piece_of(PIECE).digest, PIECE))
    siege.ask("ann", SetMembership(siege.room, siege.person("cid"), Membership.BAN))
    siege.ask("ann", SetLevel(siege.room, 10, kind="invite"))
    siege.run(2.0)
    siege.intruder()
    siege.connect("mal", "ann", "r0")
    pen = siege.pen("mal")
    return Stage(siege, pen, tuple(event.id for event in events_of(siege.log("ann"))))


@pytest.fixture
def untouched(stage: Stage) -> Iterator[Stage]:
    """Afterwards every node is as it was before, and the stranger is not worth a hang-up."""
    siege = stage.siege
    names = ("ann", "bob", "r0")
    siege.run(40.0)
    if not siege.played("mal").links:
        siege.connect("mal", "ann", "r0")
    before = [siege.print(name) for name in names]
    cards = [siege.cards(name) for name in names]
    yield stage
    siege.run(5.0)
    assert [siege.print(name) for name in names] == before
    assert all(siege.cards(name) <= one + 1 for name, one in zip(names, cards, strict=True))


Says = Callable[[Stage], Message]
Hears = Callable[[Stage], list[Message]]


def nothing(stage: Stage) -> list[Message]:
    return []


def refused(reason: Reason, detail: str) -> Hears:
    return lambda stage: [Refused(stage.siege.room, None, reason, detail)]


def no_control(reason: Reason) -> Hears:
    return lambda stage: [ControlPage(stage.siege.room, 1, (), (), False, (), (), reason)]


def greet(stage: Stage) -> Message:
    return stage.pen.greet()


def greet_with_made_up_heads(stage: Stage) -> Message:
    return stage.pen.greet((NOBODY,), (NOBODY,))


def greet_for_another(stage: Stage) -> Message:
    return replace(stage.pen.greet(), card=stage.siege.identity["bob"].card)


def want(stage: Stage) -> Message:
    return Want(stage.siege.room, 1, stage.known)


def beyond(stage: Stage) -> Message:
    return Beyond(stage.siege.room, 1, ())


def reconcile(stage: Stage) -> Message:
    return Reconcile(stage.siege.room, 1, (Range(Bound(*END), bytes(32), (), False),))


def ask_control(stage: Stage) -> Message:
    return AskControl(stage.siege.room, 1, (), None, stage.stranger.card)


def resync(stage: Stage) -> Message:
    return Resync(stage.siege.room, 1, None, 100, True)


def send(stage: Stage) -> Message:
    return RelaySend(stage.siege.room, 1, (stage.message().unit,), (stage.stranger.card,))


def send_join(stage: Stage) -> Message:
    return RelaySend(stage.siege.room, 1, (stage.join().unit,), (stage.stranger.card,))


def send_what_waits(stage: Stage) -> Message:
    return RelaySend(stage.siege.room, 1, (stage.message(NOBODY).unit,), (stage.stranger.card,))


def forward(stage: Stage) -> Message:
    return RelayForward(stage.siege.room, 1, (stage.message().unit,), (stage.stranger.card,))


def ask_to_relay(stage: Stage) -> Message:
    return RelayAsk(stage.siege.room, 1, (), stage.stranger.card)


def want_piece(stage: Stage) -> Message:
    return ChunkWant(stage.siege.room, (piece_of(PIECE).digest,))


def put_piece(stage: Stage) -> Message:
    return ChunkPut(stage.siege.room, piece_of(MINE).digest, MINE)


def receipt(stage: Stage) -> Message:
    one = stage.stranger
    return sign_room_receipt(one.device, one.card, stage.siege.room, 10**13, stage.known[-1:])


def data(stage: Stage) -> Message:
    return stage.pen.data(stage.message())


def data_of_another(stage: Stage) -> Message:
    """What is known already, brought once more: a duplicate, whoever brings it."""
    return replace(stage.pen.data(stage.message()), unit=stage.siege.log("ann")[-1])


def data_join(stage: Stage) -> Message:
    return stage.pen.data(stage.join())


def given(stage: Stage) -> Message:
    made = stage.message()
    return Given(stage.siege.room, 1, (made.unit,), (stage.stranger.card,), (NOBODY,), Reason.RETENTION)


def further(stage: Stage) -> Message:
    return Further(stage.siege.room, 1, (stage.message().unit,), (stage.stranger.card,), True, ())


def control_page(stage: Stage) -> Message:
    units, cards = (stage.join().unit,), (stage.stranger.card,)
    return ControlPage(stage.siege.room, 1, units, cards, True, (NOBODY,), (), None)


def taken(stage: Stage) -> Message:
    return RelayTaken(stage.siege.room, 1, (FORGED,), None)


def resync_page(stage: Stage) -> Message:
    units = (stage.message().unit,)
    return ResyncPage(stage.siege.room, 1, units, (), (), (), CURSOR, True, CURSOR, (NOBODY,), None)


def answer_as_relay(stage: Stage) -> Message:
    return RelayAnswer(stage.siege.room, 1, None, stage.stranger.author)


def piece(stage: Stage) -> Message:
    return ChunkIs(stage.siege.room, piece_of(MINE).digest, MINE, None)


def piece_taken(stage: Stage) -> Message:
    return ChunkTaken(stage.siege.room, piece_of(PIECE).digest, None)


def refusal(stage: Stage) -> Message:
    return Refused(stage.siege.room, stage.known[-1], Reason.BANNED, "go away")


def banished(stage: Stage) -> Message:
    """As if it were the member, and ann the stranger: members show their join to who says so."""
    return Refused(stage.siege.room, None, Reason.BANNED, "who are you?")


def event_refused(make: Callable[[Stage], Verified], reason: Reason, detail: str) -> Hears:
    return lambda stage: [Refused(stage.siege.room, make(stage).head, reason, detail)]


def not_kept(make: Callable[[Stage], Verified], reason: Reason, *missing: EventId) -> Hears:
    def hears(stage: Stage) -> list[Message]:
        outcome = RelayOutcome(make(stage).head, None, reason, missing)
        return [RelayTaken(stage.siege.room, 1, (outcome,), None)]

    return hears


GREET_FIRST = refused(Reason.NOT_A_MEMBER, "greet first")
NOT_OURS = Reason.UNKNOWN_DEVICE, "the card is of another device than the link"
NO_INVITATION = "join: the rule is invite, and there is no invitation"


@pytest.mark.parametrize(
    ("says", "hears", "reason"),
    [
        (greet_for_another, refused(*NOT_OURS), "unknown_device"),
        (want, GREET_FIRST, "not_a_member"),
        (beyond, GREET_FIRST, "not_a_member"),
        (reconcile, GREET_FIRST, "not_a_member"),
        (ask_control, no_control(Reason.NOT_INVITED), "not_invited"),
        (resync, nothing, "not_a_relay"),
        (send, nothing, "not_a_relay"),
        (forward, nothing, "not_a_relay"),
        (ask_to_relay, nothing, "not_a_relay"),
        (put_piece, nothing, "not_a_relay"),
        (receipt, nothing, "not_a_member"),
        (data, GREET_FIRST, "not_a_member"),
        (data_of_another, nothing, None),
        (data_join, event_refused(Stage.join, Reason.NOT_INVITED, NO_INVITATION), "not_invited"),
        (given, nothing, "not_a_member"),
        (further, nothing, "not_a_member"),
        (control_page, nothing, "not_a_member"),
        (taken, nothing, "stale"),
        (resync_page, nothing, "not_responsible"),
        (piece_taken, nothing, "not_a_relay"),
        (refusal, nothing, "banned"),
        (banished, nothing, "banned"),
    ],
)
def test_a_stranger_gets_nothing_of_a_member(
    untouched: Stage, says: Says, hears: Hears, reason: str | None
) -> None:
    siege, since = untouched.siege, len(untouched.siege.notes.rows)
    assert siege.tell("mal", "ann", says(untouched)) == hears(untouched)
    assert siege.refusals("ann", since) == ([] if reason is None else [reason])


@pytest.mark.parametrize("says", [greet, greet_with_made_up_heads])
def test_a_greeting_of_a_stranger_is_answered_by_a_refusal(untouched: Stage, says: Says) -> None:
    siege = untouched.siege
    for target, reason in (("ann", Reason.NOT_A_MEMBER), ("r0", Reason.NOT_INVITED)):
        heard = siege.tell("mal", target, says(untouched), seconds=10.0)
        if says is greet_with_made_up_heads and target == "r0":
            question = heard.pop(0)
            assert isinstance(question, Want)
            assert question == Want(siege.room, question.request, (NOBODY,))
        (answer,) = heard
        assert isinstance(answer, Refused)
        assert (answer.event, answer.reason) == (None, reason)


def test_pieces_are_for_members(untouched: Stage) -> None:
    siege = untouched.siege
    none = ChunkIs(siege.room, piece_of(PIECE).digest, None, Reason.NOT_A_MEMBER)
    siege.tell("mal", "r0", greet(untouched))
    for target in ("ann", "r0"):
        since = len(siege.notes.rows)
        assert siege.tell("mal", target, want_piece(untouched)) == [none]
        assert siege.refusals(target, since) == ["not_a_member"]


def test_pieces_nobody_asked_for_are_not_kept(untouched: Stage) -> None:
    siege, since = untouched.siege, len(untouched.siege.notes.rows)
    assert siege.tell("mal", "ann", piece(untouched)) == []
    assert [(each.kind, each.note) for each in siege.records_since("ann", since)] == [
        (Kind.DUPLICATE, "piece")
    ]
    assert siege.room_at("ann").chunks.store.get(piece_of(MINE).digest) is None


@pytest.mark.parametrize(
    ("says", "hears", "reason"),
    [
        (greet_for_another, refused(*NOT_OURS), "unknown_device"),
        (
            want,
            lambda stage: [Given(stage.siege.room, 1, (), (), stage.known, Reason.NOT_A_MEMBER)],
            "not_a_member",
        ),
        (beyond, nothing, "unsupported"),
        (reconcile, nothing, "unsupported"),
        (ask_control, no_control(Reason.NOT_INVITED), "not_invited"),
        (send, not_kept(Stage.message, Reason.NOT_A_MEMBER), "not_a_member"),
        (send_join, not_kept(Stage.join, Reason.NOT_INVITED), "not_invited"),
        (
            forward,
            lambda stage: [RelayTaken(stage.siege.room, 1, (), Reason.NOT_A_RELAY)],
            "not_a_relay",
        ),
        (
            put_piece,
            lambda stage: [ChunkTaken(stage.siege.room, piece_of(MINE).digest, Reason.NOT_A_MEMBER)],
            "not_a_member",
        ),
        (receipt, nothing, "not_a_member"),
        (data, nothing, "not_joined"),
        (data_join, nothing, "not_joined"),
        (further, nothing, "unsupported"),
        (given, nothing, "stale"),
        (control_page, nothing, "stale"),
        (taken, nothing, "stale"),
        (resync_page, nothing, "unsupported"),
        (answer_as_relay, nothing, "stale"),
        (piece, nothing, "unsupported"),
        (piece_taken, nothing, "unsupported"),
    ],
)
def test_a_stranger_gets_nothing_of_a_relay(untouched: Stage, says: Says, hears: Hears, reason: str) -> None:
    siege = untouched.siege
    siege.tell("mal", "r0", greet(untouched))
    since = len(siege.notes.rows)
    assert siege.tell("mal", "r0", says(untouched)) == hears(untouched)
    assert siege.refusals("r0", since) == [reason]


def test_a_stranger_that_resyncs_is_told_why_not(untouched: Stage) -> None:
    siege = untouched.siege
    empty = ResyncPage(siege.room, 1, (), (), (), (), None, False, None, (), Reason.NOT_A_MEMBER)
    siege.tell("mal", "r0", greet(untouched))
    since = len(siege.notes.rows)
    assert siege.tell("mal", "r0", resync(untouched)) == [empty]
    told = [(each.kind, each.note) for each in siege.records_since("r0", since)]
    assert told == [(Kind.RESYNC, "receive-resync"), (Kind.RESYNC, "reject-resync")]


def test_who_asked_to_follow_and_may_not_hears_nothing_of_what_comes() -> None:
    siege = Siege("ann", "bob", "r0", seed=9)
    siege.found("ann", "bob", "r0")
    siege.intruder()
    siege.connect("mal", "ann", "bob", "r0")
    pen = siege.pen("mal")
    for target in ("ann", "bob", "r0"):
        siege.tell("mal", target, pen.greet(), Resync(siege.room, 1, None, 100, True))
    siege.say("ann", "not for you")
    siege.run(5.0)
    assert siege.played("mal").take() == []


def test_a_relay_asks_a_stranger_for_what_it_named_itself_and_tells_nothing_by_it(untouched: Stage) -> None:
    """Who is unknown may be a member by events that we lack, so it is asked; but not told our heads."""
    siege = untouched.siege
    question, answer = siege.tell("mal", "r0", send_what_waits(untouched), seconds=10.0)
    assert isinstance(question, Want)
    assert question == Want(siege.room, question.request, (NOBODY,))
    made = untouched.message(NOBODY)
    lost = RelayOutcome(made.head, None, Reason.MISSING_DEPENDENCY, (NOBODY,))
    assert answer == RelayTaken(siege.room, 1, (lost,), None)


# Tickets.


def ticket(
    stage: Stage, by: str = "ann", room: TopicId | None = None, person: str | None = None, lasts: int = 10**6
) -> Ticket:
    siege, inviter = stage.siege, stage.siege.identity[by]
    one = None if person is None else siege.person(person)
    until = int(siege.network.now * 1000) + lasts
    return issue_ticket(inviter.device, inviter.card, room or siege.room, one, until, bytes(8))


def expired(stage: Stage) -> Ticket:
    return ticket(stage, lasts=-(10**6))


def of_another_room(stage: Stage) -> Ticket:
    return ticket(stage, room=TopicId(b"o" * 32))


def of_a_banned_inviter(stage: Stage) -> Ticket:
    return ticket(stage, by="cid")


def of_an_inviter_without_the_level(stage: Stage) -> Ticket:
    return ticket(stage, by="bob")


def of_a_relay(stage: Stage) -> Ticket:
    return ticket(stage, by="r0")


def of_the_stranger_itself(stage: Stage) -> Ticket:
    return ticket(stage, by="mal")


def for_another_person(stage: Stage) -> Ticket:
    return ticket(stage, person="bob")


def made_longer(stage: Stage) -> Ticket:
    return replace(ticket(stage), expires_ms=ticket(stage).expires_ms + 1)


def made_for_all(stage: Stage) -> Ticket:
    return replace(ticket(stage, person="bob"), person=None)


BAD_TICKETS = [
    (expired, Reason.INVITATION_EXPIRED),
    (of_another_room, Reason.NOT_INVITED),
    (of_a_banned_inviter, Reason.NOT_INVITED),
    (of_an_inviter_without_the_level, Reason.NOT_INVITED),
    (of_a_relay, Reason.NOT_INVITED),
    (of_the_stranger_itself, Reason.NOT_INVITED),
    (for_another_person, Reason.NOT_INVITED),
    (made_longer, Reason.BAD_SIGNATURE),
    (made_for_all, Reason.BAD_SIGNATURE),
]
TICKETS = pytest.mark.parametrize(("bad", "reason"), BAD_TICKETS)


@TICKETS
@pytest.mark.parametrize("target", ["ann", "r0"])
def test_a_bad_ticket_shows_nothing(
    untouched: Stage, target: str, bad: Callable[[Stage], Ticket], reason: Reason
) -> None:
    siege, since = untouched.siege, len(untouched.siege.notes.rows)
    ask = AskControl(siege.room, 1, (), bad(untouched), untouched.stranger.card)
    assert siege.tell("mal", target, ask) == no_control(reason)(untouched)
    assert siege.refusals(target, since) == [reason.value]


@pytest.mark.parametrize("target", ["ann", "r0"])
@pytest.mark.parametrize("card", ["none", "another's"])
def test_a_good_ticket_shows_nothing_to_who_does_not_say_who_it_is(
    untouched: Stage, target: str, card: str
) -> None:
    siege = untouched.siege
    siege.disconnect("mal", target)
    siege.connect("mal", target)
    shown = None if card == "none" else siege.identity["bob"].card
    ask = AskControl(siege.room, 1, (), ticket(untouched), shown)
    assert siege.tell("mal", target, ask) == no_control(Reason.UNKNOWN_DEVICE)(untouched)


@TICKETS
def test_a_bad_ticket_lets_nobody_in_at_a_member(
    untouched: Stage, bad: Callable[[Stage], Ticket], reason: Reason
) -> None:
    siege = untouched.siege
    join = untouched.join(bad(untouched))
    (answer,) = siege.tell("mal", "ann", untouched.pen.data(join))
    assert isinstance(answer, Refused)
    assert (answer.event, answer.reason) == (join.head, reason)


@TICKETS
def test_a_bad_ticket_lets_nobody_in_at_a_relay(
    untouched: Stage, bad: Callable[[Stage], Ticket], reason: Reason
) -> None:
    siege = untouched.siege
    join = untouched.join(bad(untouched))
    heard = siege.tell("mal", "r0", RelaySend(siege.room, 1, (join.unit,), (untouched.stranger.card,)))
    assert heard == [RelayTaken(siege.room, 1, (RelayOutcome(join.head, None, reason, ()),), None)]


def test_the_same_ways_are_open_with_a_good_ticket() -> None:
    """What is refused above is refused for what is wrong with it, and not because it is said by hand."""
    siege = Siege("ann", "r0", seed=4)
    siege.found("ann", "r0")
    siege.intruder()
    siege.enter("mal")
    assert siege.person("mal") in siege.room_at("ann").view.joined()


# Rooms that are guessed.


@pytest.mark.parametrize("target", ["ann", "r0"])
def test_a_room_that_nobody_is_in_is_unknown(untouched: Stage, target: str) -> None:
    siege, since = untouched.siege, len(untouched.siege.notes.rows)
    guess = TopicId(b"g" * 32)
    card = untouched.stranger.card
    asked = AskControl(guess, 1, (), ticket(untouched, room=guess), card)
    assert siege.tell("mal", target, asked) == [
        ControlPage(guess, 1, (), (), False, (), (), Reason.UNKNOWN_ROOM)
    ]
    resynced = siege.tell("mal", target, Resync(guess, 1, None, 100, True))
    assert resynced == [ResyncPage(guess, 1, (), (), (), (), None, False, None, (), Reason.UNKNOWN_ROOM)]
    assert siege.tell("mal", target, RelaySend(guess, 1, (), ())) == [
        RelayTaken(guess, 1, (), Reason.UNKNOWN_ROOM)
    ]
    assert siege.tell("mal", target, Beyond(guess, 1, ())) == []
    reasons = [each.reason for each in siege.records_since(target, since)]
    assert reasons == [Reason.UNKNOWN_ROOM] * 4


# Floods of strangers.


def test_a_relay_takes_no_rooms_of_people_it_does_not_know_nor_too_many_at_once() -> None:
    siege = Siege("ann", "r0", seed=5, relay=RelayConfig(policy=RelayPolicy.OPEN, max_rooms=40))
    siege.found("ann", "r0")
    siege.intruder()
    siege.connect("mal", "r0")
    asks = [RelayAsk(TopicId(bytes([n]) * 32), n, (siege.contact("ann"),)) for n in range(100)]
    answers = siege.tell("mal", "r0", *asks, seconds=1.0)
    taken = [each for each in answers if isinstance(each, RelayAnswer)]
    assert len(taken) == 100
    assert sum(each.reason is None for each in taken) <= 32
    assert {each.reason for each in taken} == {None, Reason.TOO_MANY}
    relay = siege.rooms("r0")._relay
    assert relay is not None
    siege.run(60.0)
    assert not relay._admissions  # none was ever named in any room, so all of them have ended
    assert siege.room in relay._rooms  # and the room that it serves it still serves


def test_a_flood_of_a_strangers_events_ends_its_link_and_leaves_nothing() -> None:
    siege = Siege("ann", "bob", seed=6)
    siege.found("ann", "bob")
    siege.intruder()
    siege.connect("mal", "ann")
    before, pen = siege.print("ann"), siege.pen("mal")
    joins = [pen.member(pen.identity, Membership.JOIN, siege.control(), fork=True) for _ in range(1)]
    flood = [pen.data(joins[0])] * 6000
    siege.tell("mal", "ann", *flood)
    assert siege.played("mal").ended == [Reason.FLOODING]
    assert siege.print("ann") == before
    assert len(siege.room_at("ann").memory.rejected) == 0
    siege.say("bob", "all is well")
    siege.run(1.0)
    assert siege.heard("ann") == ["all is well"]


def test_strangers_park_one_event_each_at_a_member_and_few_at_a_relay() -> None:
    siege = Siege("ann", "r0", seed=7)
    siege.found("ann", "r0")
    siege.intruder()
    siege.connect("mal", "ann", "r0")
    pen = siege.pen("mal")
    heads = [EventId(n.to_bytes(32, "big")) for n in range(1, 41)]
    joins = [pen.member(pen.identity, Membership.JOIN, (head,), fork=True) for head in heads]
    heard = siege.tell("mal", "ann", *map(pen.data, joins))
    assert [each.reason for each in heard if isinstance(each, Refused)] == [Reason.QUEUE_FULL] * 39
    assert siege.status("ann").waiting == 1
    card = pen.identity.card
    (taken,) = [
        each
        for each in siege.tell(
            "mal", "r0", RelaySend(siege.room, 1, tuple(join.unit for join in joins), (card,)), seconds=30.0
        )
        if isinstance(each, RelayTaken)
    ]
    assert {outcome.reason for outcome in taken.outcomes} == {Reason.MISSING_DEPENDENCY}
    assert len(taken.outcomes) == 40
    assert siege.status("r0").waiting == 0
    assert max(len(siege.relay_room("r0")._fetch.sought), len(siege.relay_room("r0")._answers._open)) == 0


def test_strangers_do_not_fill_the_book_of_cards() -> None:
    siege = Siege("ann", "r0", seed=8)
    siege.found("ann", "r0")
    siege.intruder()
    siege.connect("mal", "ann", "r0")
    cards = tuple(seeded_identity(8, f"nobody {n}", siege.network.now).card for n in range(50))
    before = [siege.cards(name) for name in ("ann", "r0")]
    pen = siege.pen("mal")
    for target in ("ann", "r0"):
        siege.tell("mal", target, pen.greet())
        siege.tell("mal", target, ControlPage(siege.room, 1, (), cards, True, (), (), None))
        siege.tell("mal", target, Given(siege.room, 1, (), cards, (), None))
        siege.tell("mal", target, RelaySend(siege.room, 1, (), cards))
        for card in cards[:5]:
            siege.tell("mal", target, sign_room_receipt(pen.identity.device, card, siege.room, 1, ()))
    after = [siege.cards(name) for name in ("ann", "r0")]
    assert max(one - other for one, other in zip(after, before, strict=True)) <= 1


def test_a_membership_for_another_is_not_taken_from_a_stranger(untouched: Stage) -> None:
    """A ban of somebody is a membership too, and no stranger's to bring."""
    siege, pen = untouched.siege, untouched.pen
    ban = pen.write(
        MEMBER, member_key(siege.person("bob")), Member(Membership.BAN), siege.control(), fork=True
    )
    (answer,) = siege.tell("mal", "ann", pen.data(ban))
    assert answer == Refused(siege.room, None, Reason.NOT_A_MEMBER, "greet first")
