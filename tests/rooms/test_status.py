"""How a room stands, told to those who ask."""

from __future__ import annotations

from msgspec.structs import replace
from tests.rooms.bench import Bench

from linnet.core.ids import EventId
from linnet.identity.text import Sort, to_text
from linnet.rooms.commands import ExamineRooms, ExamineState, SendToRoom, SetLevel, SetMembership, SetState
from linnet.rooms.content import NAME, POWER, RELAY, JoinRule, Membership, Power, Relay, body_of
from linnet.rooms.receipt import sign_room_receipt
from linnet.rooms.results import RoomsAre, StateIs
from linnet.rooms.status import digest_of, members_of, name_of, state_of, status_of

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


def test_the_digest_is_the_same_after_a_restart() -> None:
    bench = Bench()
    bench.join("bob")
    bench.say(SetState(bench.id, NAME, "", b"coffee"))
    before = state_of(bench.room)
    bench.restart()
    after = state_of(bench.room)
    assert (after.digest, after.entries, after.heads) == (before.digest, before.entries, before.heads)


def test_a_relay_is_shown_as_one() -> None:
    bench = Bench()
    key = to_text(Sort.DEVICE, bench.link("rex"))
    bench.govern(RELAY, key, body_of(Relay(True, bench.who("rex").author, ("tls://rex:1",))))
    bench.up("rex")
    bench.bring("rex", bench.membership("rex", "rex", Membership.JOIN, bench.ticket()))
    relays = {each.person: each.relay for each in members_of(bench.room)}
    assert relays == {bench.who("ann").author: False, bench.who("rex").author: True}


def test_a_name_with_a_key_is_not_the_rooms_name() -> None:
    bench = Bench()
    bench.say(SetState(bench.id, NAME, "de", b"Tee"))
    assert name_of(bench.room) == "tea"


def test_what_waits_what_was_refused_and_what_failed_softly_are_counted_apart() -> None:
    bench = Bench()
    bench.join("bob", "cid")
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
    bench = Bench()
    bench.join("bob", "cid")
    heads = bench.room.dag.heads
    bench.bring("bob", bench.forge("bob", deps=heads))
    bench.bring("cid", bench.forge("cid", deps=heads))
    assert status_of(bench.room).heads == 2
    bench.say(SendToRoom(bench.id, (b"both",)))
    assert status_of(bench.room).heads == 1


def test_what_nobody_has_is_unsent_until_somebody_says_that_it_has_it() -> None:
    bench = Bench()
    bench.join("bob")
    bob = bench.who("bob")
    counts: list[int] = []
    for said in (b"1",), (b"2", b"3"):
        bench.now += 1.0
        bench.say(SendToRoom(bench.id, said))
        counts.append(status_of(bench.room).unsent)
        at, heads = int(bench.now * 1000), bench.room.dag.heads
        bench.hear("bob", sign_room_receipt(bob.device, bob.card, bench.id, at, heads))
        counts.append(status_of(bench.room).unsent)
    assert counts[1:] == [0, 2, 0]
    assert counts[0] > 0


def test_whoever_has_left_sees_that_it_has() -> None:
    bench = Bench()
    bench.say(SetMembership(bench.id, bench.who("ann").author, Membership.LEAVE))
    status = status_of(bench.room)
    assert (status.membership, status.members) == (Membership.LEAVE, 0)
