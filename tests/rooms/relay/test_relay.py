"""The relay role as a whole: what members and other relays see of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.rooms.chronicle import person
from tests.rooms.relay.scenes import NOW, OPEN, Station, World, card_of, peer_of

from linnet.core.effects import AfterCommit, Send
from linnet.core.ids import Contact, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.messages import Given, Want
from linnet.event.event import MESSAGE, Spot, Tail, Unverified
from linnet.event.signing import decode_unit, recall_unit, sign_unit
from linnet.rooms.commands import AskRelay
from linnet.rooms.config import RelayPolicy
from linnet.rooms.event_types import NAME, POWER, Membership, Power
from linnet.rooms.messages import (
    AskControl,
    ControlPage,
    Greet,
    Refused,
    RelayAnswer,
    RelayAsk,
    RelayCursor,
    RelayForward,
    RelayInfo,
    RelaySend,
    RelayTaken,
    Resync,
    ResyncPage,
)
from linnet.rooms.relay import event_cache
from linnet.rooms.relay.admission import AdmissionDue, LingerDue
from linnet.rooms.relay.control_fetch import FetchDue
from linnet.rooms.relay.event_cache import EVICT_UNITS, ExpiryDue
from linnet.rooms.relay.forwarding import ForwardDue
from linnet.rooms.relay.relay import SweepDue
from linnet.store.memory import MemoryStore
from linnet.store.sqlite import SqliteStore
from linnet.trace.records import Kind, Record


def test_an_answer_waits_for_the_commit() -> None:
    world = World("r0", met=("ann",))
    unit = world.unit(world.say("ann"))
    station = world.station("r0")
    send = RelaySend(world.room, 9, (unit,), (card_of("ann"),))
    station.relay.handle_request(peer_of("ann"), send, world.now)
    effects = station.out.take()
    (promise,) = [each for each in effects if isinstance(each, AfterCommit)]
    event = recall_unit(unit).events[0]
    stored = Record(
        Kind.STORED, world.room, event.id, event.device, event.seq, peer=peer_of("ann"), note=MESSAGE
    )
    assert promise.effects[0] == stored
    assert isinstance(promise.effects[1], Send)
    assert not any(isinstance(each, Send) and isinstance(each.message, RelayTaken) for each in effects)


def test_only_control_events_are_outside_the_cache() -> None:
    world = World("r0", met=("ann",))
    world.send("r0", "ann", world.say("ann"), world.chronicle.sign("ann", NAME, "", b"tea", world.control))
    log = world.station("r0").store.log
    kinds = {recall_unit(decode_unit(entry.raw)).events[0].kind for _, entry in log.read(world.room, 0, 1000)}
    assert kinds == {"create", "member", "power", "relay"}


@pytest.mark.parametrize("relays", [1, 2, 3])
def test_each_other_relay_gets_an_event_once(relays: int) -> None:
    names = ("r0", "r1", "r2")[:relays]
    world = World(*names)
    world.link("r0", "ann")
    hello = world.say("ann")
    world.send("r0", "ann", hello)
    for name in names:
        station = world.station(name)
        sent = [each for each in station.noted(Kind.SENT) if each.event == hello.id]
        got = [each for each in station.noted(Kind.RECEIVED, MESSAGE) if each.event == hello.id]
        assert len(sent) == (relays - 1 if name == "r0" else 0)
        assert len(got) == 1


def test_an_event_sent_to_two_relays_makes_no_loop() -> None:
    world = World("r0", "r1", "r2")
    world.part("r0", "r1")
    hello = world.say("ann")
    for name in ("r0", "r1"):
        world.link(name, "ann")
        assert world.send(name, "ann", hello)[0].reason is None
    world.meet("r0", "r1")
    counts = [
        len([each for each in world.station(name).noted(Kind.STORED) if each.event == hello.id])
        for name in ("r0", "r1", "r2")
    ]
    assert counts == [1, 1, 1]
    assert world.station("r2").noted(Kind.SENT, MESSAGE) == []
    for name in ("r0", "r1"):
        assert hello.id in {each.event for each in world.station(name).noted(Kind.DUPLICATE)}


def test_origin_is_the_link_and_not_the_author() -> None:
    """A relay forwards what a member brings, whoever wrote it; and no forward of a relay."""
    world = World("r0", "r1", "r2", met=("ben",))
    hello = world.say("ann")
    assert world.send("r0", "ben", hello)[0].reason is None
    sent = [each for each in world.station("r0").noted(Kind.SENT) if each.event == hello.id]
    assert len(sent) == 2


def test_a_member_may_not_forward_as_a_relay() -> None:
    world = World("r0", met=("ann",))
    unit = world.unit(world.say("ann"))
    (taken,) = world.tell("r0", "ann", RelayForward(world.room, 4, (unit,), ()))
    assert taken == RelayTaken(world.room, 4, (), Reason.NOT_A_RELAY)


def test_forwarding_goes_on_after_an_outage_and_a_restart() -> None:
    world = World("r0", "r1", met=("ann",))
    world.part("r0", "r1")
    for number in range(5):
        world.send("r0", "ann", world.say("ann", b"%d" % number))
    world.restart("r0")
    world.meet("r0", "r1")
    world.link("r1", "ben")
    assert world.said(world.resync("r1", "ben")) == [b"0", b"1", b"2", b"3", b"4"]
    world.restart("r0")
    assert world.said(world.resync("r1", "ben")) == [b"0", b"1", b"2", b"3", b"4"]
    said = {each.id for each in world.chronicle.events if each.kind == MESSAGE}
    assert said.isdisjoint(each.event for each in world.station("r1").noted(Kind.DUPLICATE))


def test_a_resync_returns_exactly_what_lies_past_the_cursor() -> None:
    world = World("r0", met=("ann", "ben"))
    cursors = [world.send("r0", "ann", world.say("ann", b"%d" % n))[0].cursor for n in range(4)]
    assert world.said(world.resync("r0", "ben", cursors[1])) == [b"2", b"3"]
    last = world.resync("r0", "ben", cursors[3])
    assert (last.units, last.more, last.reason) == ((), False, None)


def test_pages_are_bounded_and_ascend() -> None:
    world = World("r0", met=("ann",))
    world.send("r0", "ann", *(world.say("ann", b"%d" % n) for n in range(7)))
    ids, cursor, more = [], None, True
    while more:
        page = world.resync("r0", "ann", cursor, limit=3)
        assert 1 <= len(page.units) <= 3
        ids += [recall_unit(unit).head for unit in page.units]
        cursor, more = page.next, page.more
    assert ids == list(world.chronicle.units)


@settings(max_examples=300 if os.environ.get("LINNET_SOAK") else 20, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(("send", "part", "meet", "restart")), st.integers(0, 2), st.integers(1, 2)),
        max_size=25,
    )
)
def test_whatever_fails_meanwhile_all_relays_end_with_the_same(steps: list[tuple[str, int, int]]) -> None:
    """Each event is given to one relay; links between relays break, and relays restart."""
    world = World("r0", "r1", "r2")
    for number, (what, one, step) in enumerate(steps):
        name, other = f"r{one}", f"r{(one + step) % 3}"
        if what == "send":
            world.link(name, "ann")
            assert world.send(name, "ann", world.say("ann", b"%d" % number))[0].reason is None
        elif what == "restart":
            world.restart(name)
        else:
            (world.part if what == "part" else world.meet)(name, other)
    for name, other in (("r0", "r1"), ("r1", "r2"), ("r2", "r0")):
        world.meet(name, other)
    said = sorted(b"%d" % number for number, step in enumerate(steps) if step[0] == "send")
    for name in ("r0", "r1", "r2"):
        world.link(name, "ben")
        assert sorted(world.said(world.resync(name, "ben"))) == said
        stored = [each.event for each in world.station(name).noted(Kind.STORED, MESSAGE)]
        assert len(stored) == len(set(stored))


# Skew, and the races of switching relays (Schichtholz 2024, section 4.3, asks by wall-clock time).


def test_a_peer_that_switches_relays_misses_nothing() -> None:
    """Cached at relay 0 at 10.0 and at relay 1 at 10.6; read at 1 before it came, then at 0."""
    world = World("r0", "r1")
    world.part("r0", "r1")
    world.link("r0", "ann")
    world.link("r1", "ben")
    world.link("r0", "ben")
    first = world.resync("r0", "ben")
    world.send("r0", "ann", world.say("ann", b"late"))
    world.now += 0.2
    assert world.said(world.resync("r1", "ben")) == []
    world.now += 0.4
    world.meet("r0", "r1")
    assert world.said(world.resync("r0", "ben", first.next)) == [b"late"]
    assert world.said(world.resync("r1", "ben")) == [b"late"]


@pytest.mark.parametrize("skew", [-10_000_000, 10_000_000])
def test_the_clocks_of_peers_do_not_matter(skew: int) -> None:
    world = World("r0", met=("ann",))
    before = world.resync("r0", "ann")
    odd = world.chronicle.sign("ann", MESSAGE, None, b"odd", world.control, time=skew)
    world.send("r0", "ann", odd, world.say("ann", b"even"))
    page = world.resync("r0", "ann", before.next)
    assert world.said(page) == [b"odd", b"even"]
    entry = world.station("r0").store.log.get(odd.id)
    assert entry is not None
    assert entry.stored_at == NOW


# Who may.


def test_a_ban_stops_resync_and_get_at_once_also_of_what_was_cached_before() -> None:
    world = World("r0", met=("ann", "ben"))
    hello = world.say("ann")
    world.send("r0", "ann", hello)
    assert world.said(world.resync("r0", "ben")) == [b"hello"]
    ban = world.membership("ann", "ben", Membership.BAN)
    world.send("r0", "ann", ban)
    page = world.resync("r0", "ben")
    assert (page.units, page.cards, page.next, page.reason) == ((), (), None, Reason.BANNED)
    given = world.want("r0", "ben", hello)
    assert given == Given(world.room, given.request, (), (), (hello.id,), Reason.BANNED)
    notes = [(each.note, each.reason) for each in world.station("r0").noted(Kind.RESYNC)]
    assert notes[-2:] == [("receive-resync", None), ("reject-resync", Reason.BANNED)]


def test_who_is_banned_sends_nothing() -> None:
    world = World("r0", met=("ann", "ben"))
    stale = world.control
    world.send("r0", "ann", world.membership("ann", "ben", Membership.BAN))
    old = world.say("ben", b"from before", stale)
    new = world.say("ben", b"and after")
    assert [each.reason for each in world.send("r0", "ben", old, new)] == [Reason.BANNED] * 2
    # Whoever brings it: by the state as it is now it is nothing to be kept.
    assert [each.reason is None for each in world.send("r0", "ann", old, new)] == [False, False]
    assert world.said(world.resync("r0", "ann")) == []


def test_who_is_no_member_reads_and_sends_nothing() -> None:
    world = World("r0", met=("ann",))
    hello = world.say("ann")
    world.send("r0", "ann", hello)
    greeted = world.tell("r0", "eve", world.greet("eve"))
    assert greeted == [Refused(world.room, None, Reason.NOT_INVITED, "not of this room")]
    assert world.resync("r0", "eve").reason is Reason.NOT_A_MEMBER
    assert world.want("r0", "eve", hello).units == ()
    assert world.send("r0", "eve", world.say("eve"))[0].reason is Reason.NOT_A_MEMBER
    assert world.send("r0", "eve", hello)[0].reason is Reason.DUPLICATE
    other = world.say("ann", b"brought by a stranger")
    assert world.send("r0", "eve", other)[0].reason is Reason.NOT_A_MEMBER
    (page,) = world.tell("r0", "eve", AskControl(world.room, 1, (), None, card_of("eve")))
    assert page == ControlPage(world.room, 1, (), (), False, (), (), Reason.NOT_INVITED)


def test_who_has_not_said_who_it_is_gets_nothing() -> None:
    world = World("r0")
    assert world.resync("r0", "ben").reason is Reason.UNKNOWN_DEVICE
    false = replace(world.greet("ben"), card=card_of("ann"))
    (refused,) = world.tell("r0", "ben", false)
    assert refused == Refused(
        world.room, None, Reason.UNKNOWN_DEVICE, "the card is of another device than the link"
    )
    forged = replace(world.greet("eve"), card=replace(card_of("eve"), person=person("ben").author))
    (refused,) = world.tell("r0", "eve", forged)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.BAD_SIGNATURE


def test_a_forged_join_is_none() -> None:
    """Of another, of oneself without an invitation, and with a signature that is not the joiner's."""
    world = World("r0")
    stranger = world.chronicle.member("eve", "eve", Membership.JOIN, world.control)
    assert world.send("r0", "eve", stranger)[0].reason is Reason.NOT_INVITED
    for_other = world.chronicle.member("eve", "dan", Membership.JOIN, world.control)
    assert world.send("r0", "eve", for_other)[0].cursor is None
    invited = world.membership("ann", "cyd", Membership.INVITE)
    world.link("r0", "ann")
    world.send("r0", "ann", invited)
    # Not even for one who is invited, and brought by a member.
    for_invited = world.chronicle.member("ben", "cyd", Membership.JOIN, world.control)
    assert world.send("r0", "ann", for_invited)[0].reason is Reason.NOT_ALLOWED
    join = world.chronicle.member("cyd", "cyd", Membership.JOIN, world.control)
    forged = replace(world.unit(join), sig=bytes(64))
    (taken,) = world.tell("r0", "ann", RelaySend(world.room, 1, (forged,), (card_of("cyd"),)))
    assert isinstance(taken, RelayTaken)
    assert taken.outcomes[0].reason is Reason.BAD_SIGNATURE
    assert world.resync("r0", "cyd").reason is Reason.UNKNOWN_DEVICE
    world.tell("r0", "cyd", world.greet("cyd"))
    assert world.resync("r0", "cyd").reason is Reason.NOT_A_MEMBER


def test_power_that_was_lowered_is_gone() -> None:
    world = World("r0", met=("ann", "ben"))
    high = Power(users={person("ben").author: 100}, events={NAME: 100})
    world.send("r0", "ann", world.act("ann", POWER, "", high))
    stale = world.control
    first = world.chronicle.sign("ben", NAME, "", b"tea", world.control)
    assert world.send("r0", "ben", first)[0].reason is None
    world.send("r0", "ann", world.act("ann", POWER, "", replace(high, users={})))
    second = world.chronicle.sign("ben", NAME, "", b"coffee", world.control)
    third = world.chronicle.sign("ben", NAME, "", b"milk", stale)
    assert [each.reason for each in world.send("r0", "ben", second, third)] == [Reason.NO_POWER] * 2


def test_a_relay_adds_no_relay_and_nobody_hears_it_speak() -> None:
    world = World("r0", "r1", met=("ann",))
    for event in (
        world.say("r1", b"I relay"),
        world.chronicle.member("r1", "dan", Membership.INVITE, world.control),
    ):
        assert world.send("r0", "ann", event)[0].reason is Reason.RELAY_ONLY
    served = world.station("r0").store.log
    own = [e for _, e in served.read(world.room, 0, 999) if e.author == person("r0").author]
    assert [recall_unit(decode_unit(e.raw)).events[0].kind for e in own] == ["member"]


def test_rooms_that_are_not_served_are_unknown() -> None:
    world = World("r0")
    other = TopicId(b"o" * 32)
    unit = world.unit(world.say("ann"))
    world.link("r0", "ann")
    assert world.tell("r0", "ann", RelaySend(other, 1, (unit,), ())) == [
        RelayTaken(other, 1, (), Reason.UNKNOWN_ROOM)
    ]
    page = ResyncPage(other, 2, (), (), (), (), None, False, None, (), Reason.UNKNOWN_ROOM)
    assert world.tell("r0", "ann", Resync(other, 2, None, 10, False)) == [page]
    gone = EventId(b"g" * 32)
    assert world.tell("r0", "ann", Want(other, 3, (gone,))) == [
        Given(other, 3, (), (), (gone,), Reason.UNKNOWN_ROOM)
    ]
    wrong = RelaySend(world.room, 4, (replace(unit, topic=other),), ())
    (taken,) = world.tell("r0", "ann", wrong)
    assert isinstance(taken, RelayTaken)
    assert taken.outcomes[0].reason is Reason.UNKNOWN_ROOM


# Being asked, and being dropped.


def test_a_relay_takes_rooms_of_whom_it_may() -> None:
    world = World()
    world.name_relay("r0")
    config = replace(OPEN, policy=RelayPolicy.ALLOW, allow=(person("ann").author,))
    world.add(Station("r0", config))
    for who, reason in (("ben", Reason.NOT_ALLOWED), ("ann", None)):
        world.station("r0").context.links[peer_of(who)] = None
        answers = world.tell("r0", who, RelayAsk(world.room, 5, (), card_of(who)))
        card = card_of("r0") if reason is None else None
        assert answers[0] == RelayAnswer(world.room, 5, reason, person("r0").author, card)
    (nobody,) = world.tell("r0", "eve", RelayAsk(TopicId(b"o" * 32), 6, ()))
    assert nobody == RelayAnswer(TopicId(b"o" * 32), 6, Reason.NOT_ALLOWED, person("r0").author)


def test_a_relay_that_is_full_takes_no_room() -> None:
    world = World("r0", config=replace(OPEN, max_rooms=1))
    (answer,) = world.tell("r0", "ben", RelayAsk(TopicId(b"o" * 32), 6, ()))
    assert answer == RelayAnswer(TopicId(b"o" * 32), 6, Reason.QUOTA, person("r0").author)
    (again,) = world.tell("r0", "ann", RelayAsk(world.room, 7, ()))
    assert again == RelayAnswer(world.room, 7, None, person("r0").author, card_of("r0"))


def test_a_relay_that_is_dropped_stops_and_forgets_and_leaves() -> None:
    world = World("r0", "r1", met=("ann",))
    hello = world.say("ann")
    world.send("r0", "ann", hello)
    world.name_relay("r0", active=False)
    station = world.station("r0")
    world.send("r0", "ann", world.chronicle.event(world.control[0]))
    while timer := next((each for each in station.timers if isinstance(each, LingerDue | SweepDue)), None):
        world.run_out(station, timer)
    assert not station.relay.serves(world.room)
    assert world.resync("r0", "ann").reason is Reason.UNKNOWN_ROOM
    assert station.store.log.kept(world.room).units == 0
    assert hello.id in {each.event for each in station.noted(Kind.EVICTED)}
    assert {each.reason for each in station.noted(Kind.EVICTED)} == {Reason.NOT_A_RELAY}
    published = station.noted(Kind.PUBLISHED)
    assert [each.note for each in published] == ["member", "member"]
    assert station.held == {}
    # Its leave reached the other relay, by which it is no member any more.
    leave = published[-1].event
    assert leave is not None
    assert world.station("r1").store.log.get(leave) is not None
    assert isinstance(station.store, MemoryStore)
    left = [space for space, values in station.store.cells._spaces.items() if values]
    assert sorted(left) == ["card", "relay.epoch"]  # The cards are people's, and of no room.


@pytest.mark.parametrize("pass_units", [EVICT_UNITS, 2])
def test_a_sweep_goes_on_after_every_restart(pass_units: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a part of the control events is gone, by which nobody could tell what the room decided."""
    monkeypatch.setattr(event_cache, "EVICT_UNITS", pass_units)
    world = World("r0", met=("ann",))
    world.send("r0", "ann", world.say("ann"))
    world.name_relay("r0", active=False)
    world.send("r0", "ann", world.chronicle.event(world.control[0]))
    station = world.station("r0")
    left = [station.store.log.kept(world.room).units]
    while left[-1] and len(left) < 20:
        station.boot()
        station.relay.start(world.now)
        world.carry(station)
        assert not station.relay.serves(world.room)
        left.append(station.store.log.kept(world.room).units)
    station.boot()
    station.relay.start(world.now)
    assert left == sorted(left, reverse=True)
    assert left[-1] == 0
    assert list(station.store.cells.scan("relay.room")) == []


# Restart.


def test_everything_survives_a_restart() -> None:
    world = World("r0", met=("ann", "ben"))
    hello = world.say("ann")
    before = world.send("r0", "ann", hello)[0].cursor
    report, epoch = world.station("r0").relay.examine(), world.station("r0").relay.epoch
    world.restart("r0")
    world.link("r0", "ann", "ben")
    relay = world.station("r0").relay
    assert relay.epoch == epoch
    assert relay.examine().rooms[0].kept_bytes == report.rooms[0].kept_bytes
    (again,) = world.send("r0", "ann", hello)
    assert (again.cursor, again.reason) == (before, Reason.DUPLICATE)
    assert world.said(world.resync("r0", "ben")) == [b"hello"]
    world.send("r0", "ann", world.membership("ann", "ben", Membership.BAN))
    world.restart("r0")
    world.tell("r0", "ben", world.greet("ben"))
    assert world.resync("r0", "ben").reason is Reason.BANNED


def test_an_sqlite_store_does_as_well(tmp_path: Path) -> None:
    world = World()
    world.name_relay("r0")
    store = SqliteStore(tmp_path / "store")
    world.add(Station("r0", store=store))
    world.admit("r0")
    world.link("r0", "ann")
    cursor = world.send("r0", "ann", world.say("ann", b"1"))[0].cursor
    world.send("r0", "ann", world.say("ann", b"2"))
    store.commit(lambda: None)
    store.close()
    again = SqliteStore(tmp_path / "store")
    world.station("r0").store = again
    world.restart("r0")
    world.link("r0", "ben")
    assert world.said(world.resync("r0", "ben", cursor)) == [b"2"]
    assert world.said(world.resync("r0", "ben")) == [b"1", b"2"]
    again.close()


def test_a_relay_that_lost_its_store_says_so() -> None:
    world = World("r0", met=("ann",))
    page = world.resync("r0", "ann")
    assert page.next is not None
    foreign = RelayCursor(b"unheard.", page.next.position)
    expired = world.resync("r0", "ann", foreign)
    assert (expired.reason, expired.units, expired.next) == (Reason.CURSOR_EXPIRED, (), None)
    assert expired.oldest is not None
    assert world.resync("r0", "ann", expired.oldest).units == world.control_units()


# The other face, and what else is said.


def test_the_other_face_answers_the_same() -> None:
    world = World("r0")
    relay = world.station("r0").relay
    hello, ann = world.say("ann"), person("ann")
    unit = world.unit(hello)

    def ask(message: RelaySend | RelayForward | Resync | Want | AskControl | RelayInfo) -> object:
        replies = relay.ask(AskRelay(ann.peer, ann.author, message), world.now)
        world.carry(world.station("r0"))
        (reply,) = replies.messages
        return reply

    taken = ask(RelaySend(world.room, 1, (unit,), (ann.card,)))
    assert isinstance(taken, RelayTaken)
    assert [(each.event, each.reason) for each in taken.outcomes] == [(hello.id, None)]
    page = ask(Resync(world.room, 2, None, 100, True))
    assert isinstance(page, ResyncPage)
    assert world.said(page) == [b"hello"]
    assert ask(Want(world.room, 3, (hello.id,))) == Given(world.room, 3, (unit,), (ann.card,), (), None)
    assert isinstance(ask(AskControl(world.room, 4, (), None)), ControlPage)
    assert ask(RelayForward(world.room, 5, (unit,), ())) == RelayTaken(world.room, 5, (), Reason.NOT_A_RELAY)
    info = ask(RelayInfo(0, 0, 0, 0, 0, True))
    size = relay.examine().rooms[0].kept_bytes
    assert info == RelayInfo(1, 1, size, OPEN.total_bytes, int(world.now * 1000), False)
    unknown = EventId(b"u" * 32)
    lacking = world.chronicle.make("ann", MESSAGE, None, b"?", (world.control[0],))
    tail = replace(lacking.events[0].tail, control=(unknown,))
    parked = _signed(world, tail)
    taken = ask(RelaySend(world.room, 6, (parked,), ()))
    assert isinstance(taken, RelayTaken)
    assert [(each.reason, each.missing) for each in taken.outcomes] == [
        (Reason.MISSING_DEPENDENCY, (unknown,))
    ]
    assert world.inbox.get(ann.peer, [])[-1:] != [page]  # nothing follows over a link that is not there


def test_information_is_given_to_anyone() -> None:
    world = World("r0")
    (info,) = world.tell("r0", "eve", RelayInfo(0, 0, 0, 0, 0, True))
    assert info == RelayInfo(1, 0, 0, OPEN.total_bytes, int(world.now * 1000), False)
    assert world.tell("r0", "eve", info) == []


def test_a_greeting_is_answered_with_how_far_the_relay_is() -> None:
    world = World("r0", "r1")
    world.station("r0").context.links[peer_of("ben")] = None
    answer, info = world.tell("r0", "ben", world.greet("ben"))
    assert answer == Greet(
        world.room,
        card_of("r0"),
        ("tls://r0:1",),
        (),
        world.control,
        0,
        True,
        (Contact(peer_of("r1"), ("tls://r1:1",)),),
        None,
        True,
    )
    assert isinstance(info, RelayInfo)
    assert world.tell("r0", "ben", replace(world.greet("ben"), answer=True)) == []


def test_timers_of_rooms_that_are_gone_do_nothing() -> None:
    station, room = World("r0").station("r0"), TopicId(b"y" * 32)
    kinds = (AdmissionDue, ExpiryDue, FetchDue, LingerDue, SweepDue)
    timers: list[Timer] = [ForwardDue(room, peer_of("r1")), *(kind(room) for kind in kinds)]
    assert {type(timer) for timer in timers} == set(station.router.table.timers)
    for timer in timers:
        station.router.timer(timer, NOW)
        assert station.out.take() == []


def _signed(world: World, tail: Tail) -> Unverified:
    ann = person("ann")
    return sign_unit(ann.device, Spot(world.room, ann.author, ann.card.device, 90, None), (tail,)).unit
