"""How a room stands, told to those who ask."""

from __future__ import annotations

from tests.rooms.bench import Bench

from linnet.core.ids import EventId, TopicId
from linnet.rooms.commands import (
    ExamineRooms,
    ExamineState,
    RelayRoomReport,
    RoomsAre,
    SendToRoom,
    SetLevel,
    SetMembership,
    SetState,
    StateIs,
)
from linnet.rooms.content import NAME, JoinRule, Membership
from linnet.rooms.status import digest_of, members_of, name_of, served_status, state_of, status_of

ONE, TWO = EventId(b"1" * 32), EventId(b"2" * 32)


def test_the_state_of_a_room() -> None:
    bench = Bench(rule=JoinRule.KNOCK)
    bench.join("bob")
    bench.say(SetLevel(bench.id, 50, person=bench.who("bob").author))
    state = bench.ask(ExamineState(bench.id))
    assert isinstance(state, StateIs)
    assert state.rule is JoinRule.KNOCK
    assert state.power.users == {bench.who("bob").author: 50}
    assert (state.heads, state.control) == (bench.room.dag.heads, bench.room.control.heads)
    kinds = [(entry.kind, entry.key) for entry in state.entries]
    assert kinds == sorted(kinds)
    assert ("name", "") in kinds
    assert ("power", "") in kinds


def test_digests_are_equal_where_rooms_agree_and_only_there() -> None:
    bench = Bench()
    before = state_of(bench.room).digest
    bench.say(SendToRoom(bench.id, (b"no state",)))
    assert state_of(bench.room).digest == before
    bench.say(SetState(bench.id, NAME, "", b"coffee"))
    assert state_of(bench.room).digest != before
    assert digest_of([("a", "bc", ONE)]) != digest_of([("ab", "c", ONE)])
    assert digest_of([("a", "b", ONE)]) != digest_of([("a", "b", TWO)])


def test_members_with_where_they_are() -> None:
    bench = Bench()
    bench.join("bob", "cid")
    bench.down("cid")
    bench.say(SetMembership(bench.id, bench.who("dan").author, Membership.INVITE))
    members = {each.person: each for each in members_of(bench.room)}
    ann, bob, cid, dan = (members[bench.who(name).author] for name in ("ann", "bob", "cid", "dan"))
    assert [each.online for each in (ann, bob, cid, dan)] == [True, True, False, False]
    assert bob.devices == (bench.who("bob").card.device,)
    assert (ann.level, bob.level) == (None, 0)  # a founder's has no bound
    assert [each.membership for each in (bob, dan)] == [Membership.JOIN, Membership.INVITE]


def test_the_name_is_what_the_state_says_and_of_a_bounded_length() -> None:
    bench = Bench()
    assert name_of(bench.room) == "tea"
    bench.say(SetState(bench.id, NAME, "", b"\xff" * 300))
    assert name_of(bench.room) == "\ufffd" * 200


def test_numbers_of_a_room() -> None:
    bench = Bench()
    bench.join("bob")
    bench.say(SendToRoom(bench.id, (b"x",)))
    bench.bring("bob", bench.forge("bob", deps=(ONE,), height=9))
    bench.bring("bob", bench.forge("bob", height=77))
    status = status_of(bench.room)
    assert (status.room, status.name, status.membership, status.relay) == (
        bench.id,
        "tea",
        Membership.JOIN,
        False,
    )
    assert (status.members, status.online) == (2, (bench.link("bob"),))
    assert (status.events, status.control_events) == (len(bench.room.dag), len(bench.room.control))
    assert (status.waiting, status.missing, status.soft_failed) == (2, 1, 0)
    assert status.unsent == len(bench.room.ledger.unsent())
    rooms = bench.ask(ExamineRooms())
    assert rooms == RoomsAre((status,))


def test_a_room_that_is_served_as_a_relay() -> None:
    report = RelayRoomReport(TopicId(b"r" * 32), 3, 5, 0, 0, None, 0, 0, 0, ())
    status = served_status(report)
    assert (status.relay, status.members, status.events, status.control_events) == (True, 0, 5, 3)
