"""How a room stands, for those who ask."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.rooms.bench import Bench

from linnet.core.ids import EventId, TopicId
from linnet.identity.text import Sort, to_text
from linnet.rooms.commands import (
    RelayKnowledge,
    RelayRoomReport,
    RoomMember,
    RoomStatus,
    SendToRoom,
    SetLevel,
    SetMembership,
    SetState,
)
from linnet.rooms.content import (
    CREATE,
    JOIN_RULES,
    MEMBER,
    NAME,
    POWER,
    RELAY,
    JoinRule,
    Membership,
    Power,
    Relay,
    body_of,
)
from linnet.rooms.governing import FIRST_POWER
from linnet.rooms.receipt import sign_room_receipt
from linnet.rooms.status import digest_of, members_of, name_of, served_status, state_of, status_of
from linnet.testing.identities import known_identity

ONE, TWO = EventId(b"1" * 32), EventId(b"2" * 32)
NOWHERE = EventId(b"\x07" * 32)


def members(bench: Bench) -> dict[str, RoomMember]:
    """The people of a room by name; nobody else is in it."""
    names = {bench.who(name).author: name for name in ("ann", "bob", "cid", "rex")}
    return {names[member.person]: member for member in members_of(bench.room)}


# State.


def test_the_state_names_whatever_holds_in_the_order_of_kinds_and_keys() -> None:
    bench = Bench()
    bench.say(SetState(bench.id, "mood", "b", b"calm"))
    bench.say(SetState(bench.id, "mood", "a", b"gay"))
    state = state_of(bench.room)
    places = [(entry.kind, entry.key) for entry in state.entries]
    assert places == sorted(places)
    kinds = [kind for kind, _ in places]
    assert kinds == sorted([CREATE, JOIN_RULES, MEMBER, "mood", "mood", NAME, POWER])
    assert [entry.event.body for entry in state.entries if entry.kind == "mood"] == [b"gay", b"calm"]
    assert all(entry.event.kind == entry.kind for entry in state.entries)
    assert (state.room, state.power, state.rule) == (bench.id, FIRST_POWER, JoinRule.INVITE)
    assert (state.heads, state.control) == (bench.room.dag.heads, bench.room.control.heads)
    assert state.members == members_of(bench.room)


def test_the_digest_changes_with_the_state_and_not_with_what_is_said() -> None:
    bench = Bench()
    before = state_of(bench.room).digest
    bench.say(SendToRoom(bench.id, (b"hello",)))
    assert state_of(bench.room).digest == before
    bench.say(SetState(bench.id, NAME, "", b"coffee"))
    named = state_of(bench.room).digest
    bench.say(SetLevel(bench.id, 60, kind="ban"))
    assert len({before, named, state_of(bench.room).digest}) == 3


def test_the_digest_is_the_same_after_a_restart() -> None:
    bench = Bench()
    bench.join("bob")
    bench.say(SetState(bench.id, NAME, "", b"coffee"))
    before = state_of(bench.room)
    bench.restart()
    after = state_of(bench.room)
    assert (after.digest, after.entries, after.heads) == (before.digest, before.entries, before.heads)


def test_a_digest_tells_places_apart() -> None:
    """Where one part ends and the next begins is part of it, or two states could be made to look alike."""
    digests = [
        digest_of([]),
        digest_of([("a", "bc", ONE)]),
        digest_of([("ab", "c", ONE)]),
        digest_of([("a", "bc", TWO)]),
        digest_of([("a", "bc", ONE), ("b", "", TWO)]),
        digest_of([("b", "", TWO), ("a", "bc", ONE)]),
    ]
    assert len(set(digests)) == len(digests)
    assert {len(digest) for digest in digests} == {32}


# People.


def test_people_are_shown_with_how_they_stand() -> None:
    bench = Bench()
    bench.join("bob", "cid")
    bob, cid = bench.who("bob").author, bench.who("cid").author
    bench.say(SetLevel(bench.id, 50, person=bob))
    bench.say(SetMembership(bench.id, cid, Membership.BAN))
    devices = {name: (bench.who(name).card.device,) for name in ("ann", "bob")}
    assert members(bench) == {
        "ann": RoomMember(bench.who("ann").author, Membership.JOIN, None, True, devices["ann"], False),
        "bob": RoomMember(bob, Membership.JOIN, 50, True, devices["bob"], False),
        "cid": RoomMember(cid, Membership.BAN, 0, False, (), False),
    }


def test_whose_link_is_gone_is_not_online() -> None:
    bench = Bench()
    bench.join("bob")
    bench.down("bob")
    bob = members(bench)["bob"]
    assert (bob.membership, bob.online, bob.devices) == (Membership.JOIN, False, ())


def test_a_relay_is_shown_as_one() -> None:
    bench = Bench()
    key = to_text(Sort.DEVICE, bench.link("rex"))
    bench.govern(RELAY, key, body_of(Relay(True, bench.who("rex").author, ("tls://rex:1",))))
    bench.up("rex")
    bench.bring("rex", bench.membership("rex", "rex", Membership.JOIN, bench.ticket()))
    assert {name: member.relay for name, member in members(bench).items()} == {"ann": False, "rex": True}


# Names.


@pytest.mark.parametrize(
    ("body", "name"),
    [(b"coffee", "coffee"), (b"", ""), (b"\xff!", "\ufffd!"), (b"n" * 500, "n" * 200)],
    ids=["plain", "empty", "no text", "long"],
)
def test_a_name_is_text_and_short_whatever_it_was_set_to(body: bytes, name: str) -> None:
    bench = Bench()
    assert name_of(bench.room) == "tea"
    bench.say(SetState(bench.id, NAME, "", body))
    assert name_of(bench.room) == name


def test_a_name_with_a_key_is_not_the_rooms_name() -> None:
    bench = Bench()
    bench.say(SetState(bench.id, NAME, "de", b"Tee"))
    assert name_of(bench.room) == "tea"


# Counts.


def test_a_new_room_has_its_first_events_and_nobody_to_send_them_to() -> None:
    bench = Bench()
    status = status_of(bench.room)
    first = RoomStatus(bench.id, "tea", Membership.JOIN, False, 1, (), (), 5, 4, 1, 0, 0, 0, 0, status.unsent)
    assert status == first


def test_what_waits_what_was_refused_and_what_failed_softly_are_counted_apart() -> None:
    bench = Bench()
    bench.join("bob", "cid")
    before = status_of(bench.room)
    assert (before.members, before.online) == (3, (bench.link("bob"), bench.link("cid")))
    bench.bring("bob", bench.forge("bob", POWER, "", body_of(Power())))
    bench.bring("bob", bench.forge("bob", deps=(NOWHERE,), height=99))
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


def test_a_served_room_is_shown_without_what_a_relay_cannot_know() -> None:
    standing = {"ann": Membership.JOIN, "bob": Membership.JOIN, "cid": Membership.BAN}
    people = tuple(
        RelayKnowledge(known_identity(name).author, membership, 1, 1, 1, 1, None, None, 0)
        for name, membership in standing.items()
    )
    room = TopicId(b"r" * 32)
    report = RelayRoomReport(room, 7, 12, 3400, 50, None, 2, 1, 3, people)
    assert served_status(report) == RoomStatus(
        room, None, Membership.JOIN, True, 2, (), (), 12, 7, 0, 0, 0, 0, 0, 0
    )
