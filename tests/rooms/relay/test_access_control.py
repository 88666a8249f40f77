"""What callers may ask of a relay, who of them is here, and how they are refused."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.rooms.chronicle import START_MS, person, person_key, ticket_of
from tests.rooms.relay.scenes import NOW, Station, World, card_of, peer_of

from linnet.core.effects import Send
from linnet.core.errors import RemoteError
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.messages import Given, Want
from linnet.identity.cards import check_card, revoke
from linnet.machine.outbox import Outbox
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.event_types import JOIN_RULES, REVOCATION, JoinRule, JoinRules, Membership, Revoked
from linnet.rooms.invitations import Ticket
from linnet.rooms.messages import (
    AskControl,
    ChunkIs,
    ChunkPut,
    ChunkTaken,
    ChunkWant,
    ControlPage,
    Greet,
    Refused,
    RelayForward,
    RelaySend,
    RelayTaken,
    Resync,
    ResyncPage,
)
from linnet.rooms.relay.access_control import (
    Answer,
    Caller,
    Request,
    Visitors,
    refuse_request,
    stale_answer,
    why_not_joiner,
    why_not_member,
    why_not_sender,
    why_not_visitor,
)
from linnet.rooms.relay.control_fetch import FetchDue
from linnet.trace.records import Kind, Record

ANN = Caller(peer_of("ann"), person("ann").author)


def dag_of(world: World) -> ControlDag:
    dag = ControlDag(world.chronicle.create)
    for event in world.chronicle.events[1:]:
        assert dag.add(event) is None
    return dag


def caller(who: str) -> Caller:
    return Caller(peer_of(who), person(who).author)


def visitor(world: World, who: str | None, ticket: Ticket | None = None, now: float = NOW) -> Reason | None:
    view = dag_of(world).view()
    return why_not_visitor(view, None if who is None else caller(who), ticket, check_card, now)


def test_members_are_those_who_are_joined_now() -> None:
    world = World()
    world.membership("ann", "cyd", Membership.INVITE)
    world.join("dan")
    world.membership("dan", "dan", Membership.LEAVE)
    world.membership("ann", "eve", Membership.BAN)
    view = dag_of(world).view()
    assert {who: why_not_member(view, caller(who)) for who in ("ann", "ben", "cyd", "dan", "eve")} == {
        "ann": None,
        "ben": None,
        "cyd": Reason.NOT_A_MEMBER,
        "dan": Reason.NOT_A_MEMBER,
        "eve": Reason.BANNED,
    }


def test_a_device_that_was_revoked_in_the_room_is_nobodys() -> None:
    world = World()
    device = person("ben").card.device
    world.act("ben", REVOCATION, device.hex(), Revoked(revoke(person_key("ben"), device, 1)))
    view = dag_of(world).view()
    assert why_not_member(view, caller("ben")) is Reason.CARD_REVOKED
    other = Caller(peer_of("eve"), person("ben").author)
    assert why_not_member(view, other) is None  # another device of the same person


def test_who_could_join_sees_the_control_dag() -> None:
    world = World()
    world.membership("ann", "cyd", Membership.INVITE)
    world.membership("ann", "eve", Membership.BAN)
    world.name_relay("r0")
    names = ("ann", "cyd", "r0", "dan", "eve", None)
    found = [visitor(world, who) for who in names]
    assert found == [None, None, None, Reason.NOT_INVITED, Reason.BANNED, Reason.UNKNOWN_DEVICE]
    world.act("ann", JOIN_RULES, "", JoinRules(JoinRule.PUBLIC))
    found = [visitor(world, who) for who in names]
    assert found == [None, None, None, None, Reason.BANNED, Reason.UNKNOWN_DEVICE]


def test_a_ticket_of_a_member_shows_it_while_it_lasts() -> None:
    world, who = World(), "dan"
    world.membership("ann", "eve", Membership.BAN)
    good = ticket_of("ben", world.room)
    assert visitor(world, who, good) is None
    assert visitor(world, "eve", good) is Reason.BANNED
    assert visitor(world, None, good) is Reason.UNKNOWN_DEVICE  # else nobody would be banned
    assert visitor(world, who, good, START_MS / 1000 + 10**6) is Reason.INVITATION_EXPIRED
    assert visitor(world, who, ticket_of("eve", world.room)) is Reason.NOT_INVITED
    assert visitor(world, who, ticket_of("ben", TopicId(b"o" * 32))) is Reason.NOT_INVITED
    assert visitor(world, who, replace(good, expires_ms=good.expires_ms + 1)) is Reason.BAD_SIGNATURE
    bound = ticket_of("ben", world.room, "cyd")
    assert visitor(world, "dan", bound) is Reason.NOT_INVITED
    assert visitor(world, "cyd", bound) is None


def test_strangers_bring_nothing_but_their_own_membership() -> None:
    world = World()
    world.membership("ann", "eve", Membership.BAN)
    hello, view = world.say("ann"), None
    dag = ControlDag(world.chronicle.create)
    for event in world.chronicle.events[1:-1]:
        dag.add(event)
    view = dag.view()
    knock = world.chronicle.member("cyd", "cyd", Membership.JOIN, world.control)
    again = world.chronicle.member("eve", "eve", Membership.JOIN, world.control)
    cases = {
        ("ben", "hello"): None,
        ("cyd", "hello"): Reason.NOT_A_MEMBER,
        ("cyd", "knock"): None,
        ("dan", "knock"): Reason.NOT_A_MEMBER,
        ("eve", "again"): Reason.BANNED,
    }
    events = {"hello": hello, "knock": knock, "again": again}
    assert {(who, what): why_not_sender(view, caller(who), events[what]) for who, what in cases} == cases


def test_a_ticket_that_ran_out_does_not_open_the_door_to_its_holder() -> None:
    world = World()
    ticket = ticket_of("ann", world.room)
    join = world.chronicle.member("cyd", "cyd", Membership.JOIN, world.control, ticket=ticket)
    late = START_MS / 1000 + 10**6
    assert why_not_joiner(join, caller("cyd"), NOW) is None
    assert why_not_joiner(join, caller("cyd"), late) is Reason.INVITATION_EXPIRED
    assert why_not_joiner(join, caller("ann"), late) is None  # a member passes on what it has
    plain = world.chronicle.member("cyd", "cyd", Membership.JOIN, world.control)
    assert why_not_joiner(plain, caller("cyd"), late) is None
    assert why_not_joiner(world.say("cyd"), caller("cyd"), late) is None


def test_the_card_of_the_links_own_key_is_remembered_while_the_link_lasts() -> None:
    visitors = Visitors(Station("r0").context)
    assert visitors.find_caller(ANN.peer, (), NOW) is None
    assert visitors.identify(ANN.peer, card_of("ann"), NOW) == ANN
    assert visitors.find_caller(ANN.peer, (), NOW) == ANN
    visitors.handle_link_down(ANN.peer)
    assert visitors.find_caller(ANN.peer, (), NOW) is None
    assert visitors.find_caller(ANN.peer, (card_of("ben"), card_of("ann")), NOW) == ANN


def test_cards_that_are_no_good() -> None:
    station = Station("r0")
    visitors = Visitors(station.context)
    card = card_of("ann")
    cases = [
        (card_of("ben"), NOW, Reason.UNKNOWN_DEVICE),
        (replace(card, person=person("ben").author), NOW, Reason.BAD_SIGNATURE),
        (card, card.not_after + 1000.0, Reason.CARD_EXPIRED),
        (card, card.not_before - 1000.0, Reason.CARD_NOT_YET_VALID),
    ]
    station.context.cards.learn(card)
    for wrong, now, reason in cases:
        with pytest.raises(RemoteError) as error:
            visitors.identify(ANN.peer, wrong, now)
        assert error.value.reason is reason
    station.context.cards.revoke(revoke(person_key("ann"), card.device, 1))
    with pytest.raises(RemoteError) as error:
        visitors.identify(ANN.peer, card, NOW)
    assert error.value.reason is Reason.CARD_REVOKED
    assert visitors.find_caller(ANN.peer, (card,), NOW) is None


def test_members_and_relays_are_here_while_their_link_lasts() -> None:
    world = World("r0", "r1", met=("ann",))
    assert world.station("r0").relay.status()[0].online == (peer_of("r1"), peer_of("ann"))
    world.unlink("r0", "ann")
    world.part("r0", "r1")
    assert world.station("r0").relay.status()[0].online == ()


def test_a_relay_greets_another_with_what_it_knows_as_soon_as_it_is_linked() -> None:
    world = World("r0", "r1", met=("ann",))
    world.part("r0", "r1")
    new = world.keep_for(5000)
    world.send("r0", "ann", new)
    station = world.station("r0")
    station.context.links[peer_of("r1")] = None
    station.link_up(peer_of("r1"), world.now)
    sent = [each.message for each in station.out.take() if isinstance(each, Send)]
    (greeting,) = [message for message in sent if isinstance(message, Greet)]
    assert (greeting.room, greeting.card, greeting.control) == (world.room, card_of("r0"), (new.id,))
    assert not greeting.answer


def test_who_knows_more_is_asked_before_it_is_judged() -> None:
    """A member by a join that the relay has not seen: the greeting and a resync wait for it."""
    world = World("r0")
    world.join("cyd")
    (asked,) = world.tell("r0", "cyd", world.greet("cyd"))
    assert isinstance(asked, Want)
    before = len(world.inbox[peer_of("cyd")])
    assert world.tell("r0", "cyd", Resync(world.room, 77, None, 100, False)) == []
    world.tell("r0", "cyd", world.control_page(asked.request))
    kinds = [type(each) for each in world.inbox[peer_of("cyd")][before:]]
    assert kinds == [Greet, ResyncPage]
    page = world.inbox[peer_of("cyd")][-1]
    assert isinstance(page, ResyncPage)
    assert (page.request, page.reason) == (77, None)


def test_who_only_says_so_is_refused_after_a_while() -> None:
    world = World("r0")
    lie = world.greet("eve", control=(world.say("eve").id,))
    (asked,) = world.tell("r0", "eve", lie)
    assert asked == Want(world.room, 1, lie.control)  # and not a word of our own heads
    world.fire("r0", FetchDue)
    assert world.inbox[peer_of("eve")][-1] == Refused(
        world.room, None, Reason.NOT_INVITED, "not of this room"
    )


def test_a_ticket_is_enough_for_a_greeting_and_for_nothing_more() -> None:
    world = World("r0")
    ticket = ticket_of("ann", world.room)
    (greet, _) = world.tell("r0", "cyd", replace(world.greet("cyd"), ticket=ticket))
    assert isinstance(greet, Greet)
    assert world.station("r0").relay.status()[0].online == ()
    assert world.resync("r0", "cyd").reason is Reason.NOT_A_MEMBER


def test_who_leaves_is_not_here_any_more() -> None:
    world = World("r0")
    for who in ("ann", "ben"):
        world.link("r0", who)
    world.send("r0", "ben", world.membership("ben", "ben", Membership.LEAVE))
    assert world.station("r0").relay.status()[0].online == (peer_of("ann"),)


ROOM, EVENT, DIGEST = TopicId(b"r" * 32), EventId(b"e" * 32), b"d" * 32


WHY = Reason.UNKNOWN_ROOM


@pytest.mark.parametrize(
    ("message", "answers"),
    [
        (RelaySend(ROOM, 1, (), ()), [RelayTaken(ROOM, 1, (), WHY)]),
        (RelayForward(ROOM, 2, (), ()), [RelayTaken(ROOM, 2, (), WHY)]),
        (
            Resync(ROOM, 3, None, 10, True),
            [ResyncPage(ROOM, 3, (), (), (), (), None, False, None, (), WHY)],
        ),
        (Want(ROOM, 4, (EVENT,)), [Given(ROOM, 4, (), (), (EVENT,), WHY)]),
        (AskControl(ROOM, 5, (), None), [ControlPage(ROOM, 5, (), (), False, (), (), WHY)]),
        (ChunkPut(ROOM, DIGEST, b""), [ChunkTaken(ROOM, DIGEST, WHY)]),
        (ChunkWant(ROOM, (DIGEST, DIGEST)), [ChunkIs(ROOM, DIGEST, None, WHY)] * 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no(message: Request, answers: list[Answer]) -> None:
    caller = Caller(peer_of("ann"), person("ann").author)
    kind, note = Kind.REJECTED, type(message).__name__
    if isinstance(message, Resync):
        kind, note = Kind.RESYNC, "reject-resync"
    record = Record(kind, ROOM, peer=caller.peer, reason=WHY, note=note)
    out = Outbox()
    assert refuse_request(message, WHY, caller, out) == answers
    assert out.take() == [record]
    assert refuse_request(message, WHY, None, out) == answers
    assert out.take() == [replace(record, peer=None)]


def test_an_answer_that_nobody_waits_for_is_recorded() -> None:
    peer = PeerId(b"p" * 32)
    late = RelayTaken(ROOM, 5, (), None)
    expected = Record(Kind.REJECTED, ROOM, peer=peer, reason=Reason.STALE, note="RelayTaken")
    assert stale_answer(ROOM, peer, late) == expected
