"""How a room stands, told to those who ask."""

from __future__ import annotations

from msgspec.structs import replace
from tests.rooms.bench import Bench

from linnet.core.ids import EventId
from linnet.rooms.commands import (
    ExamineState,
    SendToRoom,
    SetLevel,
    SetMembership,
    SetState,
    StateIs,
)
from linnet.rooms.event_types import NAME, POWER, JoinRule, Membership, Power, body_of
from linnet.rooms.room_status import digest_of, members_of, name_of, state_of, status_of

ONE, TWO = EventId(b"1" * 32), EventId(b"2" * 32)


def test_the_state_of_a_room() -> None:
    bench = Bench("bob", rule=JoinRule.KNOCK)
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
    bench = Bench("bob", "cid")
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


def test_a_relay_is_shown_as_one() -> None:
    bench = Bench()
    bench.name_relay("rex", "tls://rex:1")
    bench.up("rex")
    bench.bring("rex", bench.membership("rex", "rex", Membership.JOIN, bench.ticket()))
    relays = {each.person: each.relay for each in members_of(bench.room)}
    assert relays == {bench.who("ann").author: False, bench.who("rex").author: True}


def test_a_name_with_a_key_is_not_the_rooms_name() -> None:
    bench = Bench()
    bench.say(SetState(bench.id, NAME, "de", b"Tee"))
    assert name_of(bench.room) == "tea"


def test_what_waits_what_was_refused_and_what_failed_softly_are_counted_apart() -> None:
    bench = Bench("bob", "cid")
    before = status_of(bench.room)
    assert (before.members, before.online) == (3, (bench.link("bob"), bench.link("cid")))
    bench.bring("bob", bench.forge("bob", POWER, "", body_of(Power())))
    bench.bring("bob", bench.forge("bob", deps=(TWO,), height=99))
    old = bench.room.control.heads
    bench.say(SetMembership(bench.id, bench.who("cid").author, Membership.BAN))
    bench.bring("bob", bench.forge("cid", control=old, deps=old))
    after = status_of(bench.room)
    assert after == replace(
        before,
        members=2,
        online=(bench.link("bob"),),
        events=before.events + 2,
        control_events=before.control_events + 1,
        heads=after.heads,
        waiting=1,
        missing=1,
        soft_failed=1,
        rejected=1,
        unsent=after.unsent,
    )


def test_a_branch_is_one_more_head_until_somebody_joins_both() -> None:
    bench = Bench("bob", "cid")
    heads = bench.room.dag.heads
    bench.bring("bob", bench.forge("bob", deps=heads))
    bench.bring("cid", bench.forge("cid", deps=heads))
    assert status_of(bench.room).heads == 2
    bench.say(SendToRoom(bench.id, (b"both",)))
    assert status_of(bench.room).heads == 1
