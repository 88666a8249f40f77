"""What becomes of an event that reaches a relay."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.rooms.chronicle import START_MS, person, person_key, ticket_of
from tests.rooms.relay.scenes import OPEN, World, card_of, peer_of

from linnet.core.effects import Blame
from linnet.core.ids import EventId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.messages import Given, Want
from linnet.event.event import MESSAGE, Event, Spot, Tail, Unverified
from linnet.event.signing import recall_unit, sign_unit
from linnet.identity.cards import revoke
from linnet.rooms.config import RoomsConfig
from linnet.rooms.event_types import (
    CREATE,
    JOIN_RULES,
    POWER,
    REVOCATION,
    JoinRule,
    JoinRules,
    Membership,
    Power,
    Revoked,
)
from linnet.rooms.messages import (
    AskControl,
    ControlPage,
    RelayOutcome,
    RelaySend,
    RelayTaken,
)
from linnet.rooms.relay.control_fetch import FetchDue
from linnet.trace.records import Kind


def outcome_of(world: World, unit: Unverified, who: str = "ann") -> RelayOutcome:
    world._request += 1
    cards = world.cards([unit])
    (taken,) = world.tell("r0", who, RelaySend(world.room, world._request, (unit,), cards))
    assert isinstance(taken, RelayTaken)
    (outcome,) = taken.outcomes
    return outcome


def signed(
    world: World, who: str, topic: bytes | None = None, seq: int | None = 50, **tail: object
) -> Unverified:
    """An event that is as it should be, but for what is given."""
    one = person(who)
    made = Tail(world.control, None, 99, world.control, MESSAGE, None, START_MS, None, b"x")
    made = replace(made, **tail)
    room = world.room if topic is None else TopicId(topic)
    return sign_unit(one.device, Spot(room, one.author, one.card.device, seq, None), (made,)).unit


@pytest.fixture
def world() -> World:
    world = World("r0", met=("ann", "ben"))
    return world


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"seq": None}, Reason.MALFORMED),
        ({"control": None}, Reason.MALFORMED),
        ({"kind": CREATE, "key": ""}, Reason.MALFORMED),
        ({"kind": "member", "key": "nobody"}, Reason.MALFORMED),
        ({"kind": "power", "key": "", "body": b"?"}, Reason.MALFORMED),
        ({"topic": b"o" * 32}, Reason.UNKNOWN_ROOM),
    ],
)
def test_each_fault_alone_is_enough(world: World, changes: dict[str, Any], reason: Reason | None) -> None:
    outcome = outcome_of(world, signed(world, "ann", **changes))
    assert outcome.reason is reason
    assert (outcome.cursor is None) == (reason is not None)


def test_a_signature_counts_and_whoever_forges_is_blamed(world: World) -> None:
    unit = replace(signed(world, "ann"), sig=bytes(64))
    station = world.station("r0")
    station.relay.handle_request(peer_of("ben"), RelaySend(world.room, 1, (unit,), ()), world.now)
    assert Blame(peer_of("ben"), Reason.BAD_SIGNATURE) in station.out.take()
    stored = world.station("r0").store.log.get(recall_unit(unit).head)
    assert stored is None


def test_a_device_without_a_card_is_unknown(world: World) -> None:
    unit = signed(world, "cyd")
    (taken,) = world.tell("r0", "ann", RelaySend(world.room, 1, (unit,), ()))
    assert isinstance(taken, RelayTaken)
    assert [each.reason for each in taken.outcomes] == [Reason.UNKNOWN_DEVICE]
    assert world.station("r0").store.log.get(recall_unit(unit).head) is None


def test_bytes_that_are_no_event_are_answered(world: World) -> None:
    unit = replace(signed(world, "ann"), tails=(b"\x99" + b"?" * 20,))
    assert outcome_of(world, unit) == RelayOutcome(EventId(bytes(32)), None, Reason.MALFORMED, ())
    unit = replace(signed(world, "ann"), tails=(b"?" * 20,))
    assert outcome_of(world, unit).reason is Reason.MALFORMED


# Missing control events.


def test_what_is_missing_is_fetched_and_the_event_taken(world: World) -> None:
    invite, join = world.join("cyd")
    hello = world.say("cyd")
    world.tell("r0", "cyd", world.greet("cyd", control=()))
    assert world.send("r0", "cyd", hello) == ()  # the answer waits
    asked = [each for each in world.inbox[peer_of("cyd")] if isinstance(each, Want)][-1]
    assert asked.ids == (join.id,)  # by id: who is no member as far as we know is not told our heads
    (again,) = world.tell("r0", "cyd", world.given(asked.request, join))
    assert again == Want(world.room, asked.request, (invite.id,))
    answers = world.tell("r0", "cyd", world.given(asked.request, invite))
    taken = [each for each in answers if isinstance(each, RelayTaken)]
    assert [(each.event, each.reason) for each in taken[0].outcomes] == [(hello.id, None)]
    assert world.said(world.resync("r0", "cyd")) == [b"hello"]


def test_the_question_turns_from_one_to_the_next_and_by_id(world: World) -> None:
    join = world.join("cyd")[1]
    hello = world.say("ann")
    world.send("r0", "ann", hello)
    world.fire("r0", FetchDue)
    asked = [each for each in world.inbox[peer_of("ben")] if isinstance(each, AskControl)]
    assert len(asked) == 1
    empty = ControlPage(world.room, asked[0].request, (), (), False, (), (), None)
    (want,) = world.tell("r0", "ben", empty)
    assert want == Want(world.room, asked[0].request, (join.id,))
    unit = world.unit(join)
    given = Given(world.room, want.request, (unit,), (card_of("cyd"),), (), None)
    # It names the invitation, which is missing too: that is asked for now.
    world.tell("r0", "ben", given)
    assert world.station("r0").relay.status()[0].waiting == 2


def test_after_so_many_tries_an_event_is_refused_for_now(world: World) -> None:
    world.join("cyd")
    missing = world.control
    hello = world.say("ann")
    before = len(world.inbox[peer_of("ann")])
    world.send("r0", "ann", hello)
    start = world.now
    for _ in range(OPEN.fetch_tries):
        world.fire("r0", FetchDue)
    assert world.now - start <= OPEN.fetch_tries * OPEN.fetch_timeout
    taken = [each for each in world.inbox[peer_of("ann")][before:] if isinstance(each, RelayTaken)]
    assert taken[0].outcomes == (RelayOutcome(hello.id, None, Reason.MISSING_DEPENDENCY, missing),)
    assert world.station("r0").relay.status()[0].waiting == 0
    # It was refused for now: with what was missing before it, it is taken.
    events = [world.chronicle.event(each) for each in list(world.chronicle.units)[-3:]]
    assert [each.reason for each in world.send("r0", "ann", *events)] == [None, None, None]


def test_a_message_among_control_heads_is_found_out(world: World) -> None:
    hello = world.say("ann")
    wrong = signed(world, "ann", control=(hello.id,))
    world.tell("r0", "ann", RelaySend(world.room, 8, (wrong,), ()))
    asked = [each for each in world.inbox[peer_of("ann")] if isinstance(each, AskControl)][-1]
    empty = ControlPage(world.room, asked.request, (), (), False, (), (), None)
    (want,) = world.tell("r0", "ann", empty)
    assert isinstance(want, Want)
    given = Given(world.room, want.request, (world.unit(hello),), (), (), None)
    answers = world.tell("r0", "ann", given)
    assert answers == [
        RelayTaken(
            world.room, 8, (RelayOutcome(recall_unit(wrong).head, None, Reason.NOT_ALLOWED, ()),), None
        )
    ]


def test_few_may_wait_and_nobody_takes_all_places() -> None:
    world = World("r0", config=replace(OPEN, park_events=8), met=("ann", "ben"))
    world.join("cyd")
    events = [world.say("ann", b"%d" % number) for number in range(3)]
    before = len(world.inbox[peer_of("ann")])
    world.send("r0", "ann", *events)
    for _ in range(OPEN.fetch_tries):
        world.fire("r0", FetchDue)
    (taken,) = [each for each in world.inbox[peer_of("ann")][before:] if isinstance(each, RelayTaken)]
    assert sorted(each.reason or "" for each in taken.outcomes) == [
        Reason.MISSING_DEPENDENCY,
        Reason.MISSING_DEPENDENCY,
        Reason.QUEUE_FULL,
    ]


def test_strangers_are_not_worth_much_work() -> None:
    """Whoever may be a member by events that we lack is looked at, but not at everything it sends."""
    world = World("r0")
    world.tell("r0", "cyd", world.greet("cyd", control=()))
    world.join("cyd")
    hellos = [world.say("cyd", b"%d" % number) for number in range(12)]
    before = len(world.inbox[peer_of("cyd")])
    world.send("r0", "cyd", *hellos)
    assert world.station("r0").relay.status()[0].waiting == 8
    asked = [each for each in world.inbox[peer_of("cyd")][before:] if isinstance(each, Want)][-1]
    world.tell("r0", "cyd", world.control_page(asked.request))
    taken = [each for each in world.inbox[peer_of("cyd")][before:] if isinstance(each, RelayTaken)][-1]
    reasons = {each.event: (each.reason, len(each.missing)) for each in taken.outcomes}
    assert [reasons[each.id] for each in hellos] == [(None, 0)] * 8 + [(Reason.MISSING_DEPENDENCY, 1)] * 4
    assert [each.reason for each in world.send("r0", "cyd", *hellos[8:])] == [None] * 4


def test_cards_are_learned_with_what_is_kept_alone(world: World) -> None:
    eve = person("eve")
    world.tell("r0", "eve", world.greet("eve"))
    unit = signed(world, "eve", control=(EventId(b"u" * 32),))
    world.tell("r0", "eve", RelaySend(world.room, 3, (unit,), (eve.card,)))
    ticket = ticket_of("dan", world.room)
    world.tell("r0", "eve", AskControl(world.room, 1, (), ticket))
    cards = world.station("r0").context.cards
    assert cards.find(eve.author, eve.card.device) is None
    assert cards.find(person("dan").author, card_of("dan").device) is None
    world.send("r0", "ann", *world.join("dan"))
    assert cards.find(person("dan").author, card_of("dan").device) is not None


def test_an_event_that_waits_is_answered_to_all_who_bring_it(world: World) -> None:
    invite, join = world.join("cyd")
    hello = world.say("ann")
    for who in ("ann", "ben", "ben"):
        assert world.send("r0", who, hello) == ()
    assert world.station("r0").relay.status()[0].waiting == 1
    world.send("r0", "ann", invite, join)
    for who, count in (("ann", 1), ("ben", 2)):
        taken = [each for each in world.inbox[peer_of(who)] if isinstance(each, RelayTaken)]
        about = [each for one in taken for each in one.outcomes if each.event == hello.id]
        assert [each.reason for each in about] == [None] * count
    assert len([each for each in world.station("r0").noted(Kind.STORED) if each.event == hello.id]) == 1


# Soft failure.


def test_an_old_branch_of_somebody_who_is_banned(world: World) -> None:
    """A message is nothing; of control events a few a day are kept and passed on, for convergence."""
    stale = world.control
    world.send("r0", "ann", world.membership("ann", "ben", Membership.BAN))
    message = world.say("ben", b"still here", stale)
    assert world.send("r0", "ann", message)[0].cursor is None
    outcomes: list[RelayOutcome] = []
    for number in range(OPEN.soft_failed + 3):
        name = f"guest {number}"
        invite = world.chronicle.member("ben", name, Membership.INVITE, stale)
        outcomes += world.send("r0", "ann", invite)
    kept = [each for each in outcomes if each.cursor is not None]
    assert [each.reason for each in kept] == [Reason.SOFT_FAILED] * OPEN.soft_failed
    assert [each.reason for each in outcomes[OPEN.soft_failed :]] == [Reason.TOO_MANY] * 3
    world.now += 86_400
    one_more = world.chronicle.member("ben", "guest 99", Membership.INVITE, stale)
    assert world.send("r0", "ann", one_more)[0].reason is Reason.SOFT_FAILED


def test_a_flood_of_control_events_ends_at_the_limit() -> None:
    world = World("r0", rooms=RoomsConfig(max_control=16), met=("ann",))
    stem = world.control
    reasons = []
    for number, rule in enumerate([JoinRule.PUBLIC, JoinRule.INVITE] * 8):
        event = world.chronicle.sign("ann", JOIN_RULES, "", JoinRules(rule), stem, time=number)
        reasons += [each.reason for each in world.send("r0", "ann", event)]
    room = 20 - len(world.control_units()) + 16  # a quarter more for who may put people out
    assert reasons == [None] * room + [Reason.QUOTA] * (16 - room)
    assert world.station("r0").relay.examine().rooms[0].control_events == 20


def test_a_full_room_takes_no_more_of_who_may_not_put_people_out() -> None:
    world = World("r0", rooms=RoomsConfig(max_control=8), met=("ann",))
    assert world.station("r0").relay.examine().rooms[0].control_events == 8
    leave = world.chronicle.member("ben", "ben", Membership.LEAVE, world.control)
    assert world.send("r0", "ann", leave)[0].reason is Reason.QUOTA
    kick = world.chronicle.member("ann", "ben", Membership.LEAVE, world.control)
    assert world.send("r0", "ann", kick)[0].reason is None


def test_what_others_build_on_is_taken_past_the_allowance() -> None:
    world = World("r0", config=replace(OPEN, soft_failed=0), met=("ann", "ben"))
    stale = world.control
    invite = world.chronicle.member("ben", "dan", Membership.INVITE, stale)
    ban = world.membership("ann", "ben", Membership.BAN)
    world.send("r0", "ann", ban)
    assert world.send("r0", "ann", invite)[0].reason is Reason.TOO_MANY
    # ann saw the invitation before she banned, and names it.
    hello = world.say("ann", b"on both", (*world.control, invite.id))
    world.send("r0", "ann", hello)
    before = len(world.inbox[peer_of("ann")])
    world.send("r0", "ann", invite)
    taken = [each for each in world.inbox[peer_of("ann")][before:] if isinstance(each, RelayTaken)]
    about = [(each.event, each.reason) for one in taken for each in one.outcomes]
    assert about == [(invite.id, Reason.SOFT_FAILED), (hello.id, None)]


@pytest.mark.parametrize("is_stolen", [True, False])
def test_what_a_person_builds_on_of_a_device_that_was_stolen_is_taken_past_the_allowance(
    is_stolen: bool,
) -> None:
    """Seed 22 of rooms: a relay refused all that the founder decided, and asked for it without end."""
    world = World("r0", config=replace(OPEN, soft_failed=0), met=("ben", "ann"))
    stale = world.control
    thief = "ben/phone" if is_stolen else "ben"
    invite = world.chronicle.member(thief, "dan", Membership.INVITE, stale)
    if is_stolen:
        device = person(thief).card.device
        word = Revoked(revoke(person_key("ben"), device, 1))
        world.send("r0", "ben", world.act("ben", REVOCATION, device.hex(), word))
    else:
        world.send("r0", "ann", world.act("ann", POWER, "", Power(invite=100)))
    unit = world.unit(invite)
    brought = RelaySend(world.room, 99, (unit,), (person(thief).card,))
    (refused,) = world.tell("r0", "ben", brought)
    assert isinstance(refused, RelayTaken)
    assert [each.reason for each in refused.outcomes] == [Reason.TOO_MANY]
    # ben's own device saw the invitation before, and names it.
    world.send("r0", "ben", world.say("ben", b"on both", (*world.control, invite.id)))
    before = len(world.inbox[peer_of("ben")])
    world.tell("r0", "ben", brought)
    taken = [each for each in world.inbox[peer_of("ben")][before:] if isinstance(each, RelayTaken)]
    reasons = [each.reason for one in taken for each in one.outcomes if each.event == invite.id]
    assert reasons == [Reason.SOFT_FAILED if is_stolen else Reason.TOO_MANY]


# The door.


def test_a_ticket_has_to_be_good_when_its_holder_comes() -> None:
    world = World("r0", "r1")
    soon = int(world.now * 1000) + 60_000 - START_MS
    ticket = ticket_of("ann", world.room, expires=soon)
    join = world.chronicle.member("cyd", "cyd", Membership.JOIN, world.control, ticket=ticket, time=soon)
    world.now += 3600
    assert world.send("r0", "cyd", join)[0].reason is Reason.INVITATION_EXPIRED
    # It is in the room all the same, if a member had it in time: the event's own time counts there.
    world.link("r1", "ann")
    assert world.send("r1", "ann", join)[0].reason is None
    world.link("r0", "ann")
    assert world.send("r0", "ann", join)[0].reason is Reason.DUPLICATE


def test_a_ticket_that_ran_out_is_no_better_in_an_answer_to_our_question() -> None:
    world = World("r0")
    soon = int(world.now * 1000) + 60_000 - START_MS
    ticket = ticket_of("ann", world.room, expires=soon)
    join = world.chronicle.member("cyd", "cyd", Membership.JOIN, world.control, ticket=ticket, time=soon)
    world.now += 3600
    (asked,) = world.tell("r0", "cyd", world.greet("cyd", control=(join.id,)))
    assert isinstance(asked, Want)
    world.tell("r0", "cyd", world.control_page(asked.request))
    assert world.resync("r0", "cyd").reason is Reason.NOT_A_MEMBER
    refused = [each.reason for each in world.station("r0").noted(Kind.REJECTED) if each.event == join.id]
    assert refused == [Reason.INVITATION_EXPIRED]


# Room.


def test_one_author_has_a_share_and_the_rest_is_refused() -> None:
    world = World("r0", config=replace(OPEN, sender_bytes=2000), met=("ann", "ben"))
    events = [world.say("ann", b"." * 300) for _ in range(6)]
    reasons = [each.reason for each in world.send("r0", "ann", *events)]
    kept = reasons.count(None)
    assert reasons == [None] * kept + [Reason.QUOTA] * (6 - kept)
    assert 1 < kept < 6
    assert world.send("r0", "ben", world.say("ben"))[0].reason is None


def test_the_oldest_give_way_and_their_authors_learn_it() -> None:
    world = World("r0", config=replace(OPEN, room_bytes=2000), met=("ann",))
    events = [world.say("ann", b"%d" % number + b"." * 300) for number in range(6)]
    cursors = [each.cursor for each in world.send("r0", "ann", *events)]
    assert None not in cursors
    page = world.resync("r0", "ann")
    kept = [each[:1] for each in world.said(page)]
    assert kept == [b"%d" % number for number in range(6 - len(kept), 6)]
    gone = events[: 6 - len(kept)]
    assert [(each.event, each.reason) for each in page.tombstones] == [
        (each.id, Reason.QUOTA) for each in gone
    ]
    evicted = world.station("r0").noted(Kind.EVICTED)
    assert [(each.event, each.reason) for each in evicted] == [(each.id, Reason.QUOTA) for each in gone]
    assert world.resync("r0", "ann", cursors[0]).reason is Reason.CURSOR_EXPIRED
    (again,) = world.send("r0", "ann", gone[0])
    assert (again.cursor, again.reason) == (None, Reason.QUOTA)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(min_value=0, max_value=2**32), lost=st.integers(min_value=0, max_value=3))
def test_in_whatever_order_it_comes_the_same_is_kept(seed: int, lost: int) -> None:
    """Events are shuffled, so that many wait for others; what was answered with a cursor is kept.

    Only whether the word of who is banned came before the ban is a matter of order.
    """
    world = World("r0", met=("ann",))
    before = {recall_unit(unit).head for unit in world.resync("r0", "ann").units}
    events: list[Event] = []
    for name in ("cyd", "dan"):
        events += world.join(name)
        events.append(world.say(name, name.encode()))
    events.append(world.membership("ann", "dan", Membership.BAN))
    events.append(world.say("cyd", b"after"))
    expected = {event.id for event in events if event.kind != MESSAGE or event.body != b"dan"}
    luck = Random(seed)
    shuffled = events[:]
    luck.shuffle(shuffled)
    outcomes: dict[EventId, RelayOutcome] = {}
    for event in [*shuffled, *shuffled[:lost]]:
        world.send("r0", "ann", event)
    for message in world.inbox[peer_of("ann")]:
        if isinstance(message, RelayTaken):
            for outcome in message.outcomes:
                outcomes.setdefault(outcome.event, outcome)
    kept = {recall_unit(unit).head for unit in world.resync("r0", "ann").units}
    assert {event.id for event in events if outcomes[event.id].cursor is not None} <= kept
    assert kept - before - {event.id for event in events if event.body == b"dan"} == expected


def test_what_comes_is_recorded_before_it_is_judged(world: World) -> None:
    stale = world.control
    world.send("r0", "ann", world.membership("ann", "ben", Membership.BAN))
    refused, taken = world.say("ben", b"still here", stale), world.say("ann")
    world.send("r0", "ann", refused, taken)
    for event, kinds in ((refused, [Kind.RECEIVED, Kind.REJECTED]), (taken, [Kind.RECEIVED, Kind.STORED])):
        records = [each for each in world.station("r0").records if each.event == event.id]
        assert [each.kind for each in records] == kinds
        assert records[0].note == MESSAGE
