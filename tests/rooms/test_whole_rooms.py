"""What holds of whole rooms of real node machines, over and above what each part promises by itself."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.rooms.circle import Circle, Devices, founded

from linnet.core.ids import EventId, TopicId
from linnet.core.reasons import Reason
from linnet.event.event import MESSAGE, Event
from linnet.event.signing import decode_unit, recall_unit
from linnet.identity.cards import revoke
from linnet.machine.commands import Declined
from linnet.peer.config import PeerConfig
from linnet.rooms.commands import (
    AddRelay,
    JoinRoom,
    ReadRoom,
    RevokeInRoom,
    RoomMade,
    SendToRoom,
    Sent,
    SetMembership,
    SetRetention,
    SetState,
)
from linnet.rooms.config import RelayConfig, RelayPolicy, RoomsConfig
from linnet.rooms.event_types import NAME, Membership, Newcomers
from linnet.trace.records import Kind


def event_of(circle: Circle, name: str, event: EventId) -> Event:
    """An event as a member keeps it."""
    entry = circle.stores[name].log.get(event)
    assert entry is not None
    return recall_unit(decode_unit(entry.raw)).events[0]


def messages_since(circle: Circle, name: str, kind: Kind, since: int) -> int:
    """Records of messages at a node, from so many lines of the trace on."""
    rows = circle.notes.rows[since:]
    return sum(
        node == circle.peer(name) and record.kind is kind and record.note == MESSAGE
        for _, node, record in rows
    )


# The event DAG.


def test_the_next_event_joins_the_branches_that_it_has_seen() -> None:
    circle = founded("ann", "bob")
    circle.network.partition([[circle.peer("ann")], [circle.peer("bob")]])
    (left,), (right,) = circle.say("ann", "left"), circle.say("bob", "right")
    circle.run(2.0)
    circle.network.heal()
    circle.run(40.0)
    assert set(circle.state("ann").heads) == {left, right}
    (joined,) = circle.say("bob", "both")
    circle.run(2.0)
    assert set(event_of(circle, "ann", joined).tail.deps or ()) == {left, right}
    for name in ("ann", "bob"):
        assert circle.state(name).heads == (joined,)


def test_who_went_on_apart_after_a_long_history_exchange_what_differs() -> None:
    """They compare, and do not send each other again the six hundred events that both have."""
    circle = founded("ann", "bob")
    for start in range(0, 600, 100):
        circle.say("ann", *(f"line {number}" for number in range(start, start + 100)))
    circle.run(5.0)
    assert len(circle.heard("bob")) == 600
    circle.network.partition([[circle.peer("ann")], [circle.peer("bob")]])
    circle.say("ann", "left 0", "left 1", "left 2")
    circle.say("bob", "right 0", "right 1", "right 2")
    circle.run(2.0)
    since = len(circle.notes.rows)
    circle.network.heal()
    circle.run(40.0)
    assert sorted(circle.heard("ann")) == sorted(circle.heard("bob"))
    assert len(circle.heard("ann")) == 606
    for name in ("ann", "bob"):
        assert 3 <= messages_since(circle, name, Kind.RECEIVED, since) < 50


# Who is there.


class Tracked(Circle):
    """The first name is a tracker, which all others know."""

    def _config(self, name: str) -> PeerConfig:
        tracker = next(iter(self.identity))
        return PeerConfig(
            listens=(f"tls://{name}:1",),
            trackers=(self.contact(tracker),),
            is_tracker=name == tracker,
            rooms=self.config,
        )


def test_a_room_larger_than_its_mesh_goes_on_in_the_graph_of_a_tracker() -> None:
    assert RoomsConfig().mesh == 32
    names = [f"p{number}" for number in range(9)]
    circle = Tracked("tracker", *names, config=RoomsConfig(mesh=4))
    circle.found(*names)
    circle.run(30.0)
    assert all(circle.room_at(name).neighbors._in_graph for name in names)
    for name in names:
        circle.say(name, f"{name} is here")
    circle.run(10.0)
    for name in names:
        assert sorted(circle.heard(name)) == [f"{each} is here" for each in names]
    assert len({circle.state(name).digest for name in names}) == 1


def test_a_person_with_two_devices_is_one_member() -> None:
    circle = Devices("ann", "bob", "bob2")
    circle.found("ann", "bob")
    circle.join("bob2", by="ann")
    circle.read("bob2")
    circle.run(3.0)
    (member,) = [each for each in circle.state("ann").members if each.person == circle.person("bob")]
    assert member.membership is Membership.JOIN
    assert sorted(member.devices) == sorted(circle.identity[name].card.device for name in ("bob", "bob2"))
    circle.say("bob", "by laptop")
    circle.run(1.0)
    circle.say("bob2", "by phone")
    circle.run(1.0)
    for name in ("ann", "bob", "bob2"):
        assert circle.heard(name) == ["by laptop", "by phone"]
    circle.offline("bob2")
    (event,) = circle.say("ann", "to bob")
    circle.run(3.0)
    assert circle.fates("ann", event) == {"bob2": "delivered"}  # bob, by whichever device has it
    circle.online("bob2")
    circle.run(5.0)
    assert circle.heard("bob2")[-1] == "to bob"
    # The phone is lost: its person takes it out of the room, and stays in it.
    word = revoke(circle.person_key("bob"), circle.identity["bob2"].card.device, int(circle.network.now))
    circle.get("bob", RevokeInRoom(circle.room, word), Sent)
    circle.run(2.0)
    circle.say("bob", "without my phone")
    circle.run(2.0)
    assert circle.heard("ann")[-1] == "without my phone"
    assert "without my phone" not in circle.heard("bob2")
    assert circle.declined("bob2", SendToRoom(circle.room, (b"x",))).reason is Reason.CARD_REVOKED


def test_rooms_of_one_node_have_nothing_to_do_with_each_other() -> None:
    circle = Circle("ann", "bob", "cid", "r0")
    circle.found("ann", "bob", "r0", read=False)
    first = circle.room
    circle.found("ann", "bob", "cid", "r0", read=False)
    second = circle.room
    for number, room in enumerate((first, second)):
        circle.ask("bob", ReadRoom(10 + number, room, 0.0, f"app {number}", state=False))
    circle.offline("bob")
    since = len(circle.notes.rows)
    said = {room: circle.get("ann", SendToRoom(room, (b"here",)), Sent).ids for room in (first, second)}
    circle.run(3.0)
    circle.room = TopicId(b"")  # so that bob's return reads nothing by itself
    circle.online("bob")
    circle.run(3.0)
    asked = [
        record.topic
        for _, node, record in circle.notes.rows[since:]
        if node == circle.peer("bob") and record.kind is Kind.RESYNC and record.note == "resync"
    ]
    assert sorted(room for room in asked if room is not None) == sorted((first, second))
    for room, other in ((first, second), (second, first)):
        assert event_of(circle, "bob", said[room][0]).topic == room != other
    circle.get("ann", SetMembership(first, circle.person("bob"), Membership.BAN), Sent)
    circle.run(2.0)
    assert circle.declined("bob", SendToRoom(first, (b"x",))).reason is Reason.BANNED
    circle.get("bob", SendToRoom(second, (b"still here",)), Sent)
    assert circle.declined("cid", SendToRoom(first, (b"x",))).reason is Reason.UNKNOWN_ROOM


# Relays.


def test_what_is_said_goes_to_one_relay_which_passes_it_on() -> None:
    circle = founded("ann", "bob", "r0", "r1", "r2")
    sent = circle.get("ann", SendToRoom(circle.room, (b"hello",)), Sent)
    circle.run(3.0)
    told = [record.peer for record in circle.records("ann", Kind.SENT) if record.event == sent.ids[0]]
    assert told == [circle.peer("bob"), *sent.relays]
    assert len(sent.relays) == 1
    for name in ("r0", "r1", "r2"):
        assert [record.note for record in circle.records(name, Kind.STORED)].count(MESSAGE) == 1


class Mixed(Circle):
    """Who is called `loner` uses no relay."""

    def _config(self, name: str) -> PeerConfig:
        usual = super()._config(name)
        return replace(usual, rooms=RoomsConfig(relays_at_once=0)) if name == "loner" else usual


def test_what_somebody_says_who_uses_no_relay_is_at_no_relay() -> None:
    """Schichtholz 2024, figure 17: a third one, who comes later, finds there what the others said."""
    circle = Mixed("ann", "loner", "cid", "r0")
    circle.found("ann", "loner", "cid", "r0")
    circle.offline("cid")
    circle.run(1.0)
    (alpha,) = circle.say("ann", "alpha")
    circle.run(1.0)
    (beta,) = circle.say("loner", "beta")
    circle.run(3.0)
    assert circle.heard("loner") == circle.heard("ann") == ["alpha", "beta"]
    stored = [record.event for record in circle.records("r0", Kind.STORED)]
    assert alpha in stored
    assert beta not in stored
    circle.offline("ann", "loner")
    circle.online("cid")
    circle.run(5.0)
    assert circle.heard("cid") == ["alpha"]
    circle.online("loner")
    circle.run(5.0)
    assert circle.heard("cid") == ["alpha", "beta"]


@pytest.mark.parametrize("why", ["retention", "capacity"])
def test_what_a_relay_let_go_is_told_to_its_author(why: str) -> None:
    small = RelayConfig(policy=RelayPolicy.OPEN, room_bytes=2000)
    circle = founded("ann", "bob", "r0", relay=small if why == "capacity" else None)
    if why == "retention":
        circle.get("ann", SetRetention(circle.room, 20.0), Sent)
    circle.offline("bob")
    (event,) = circle.say("ann", "x" * 400)
    circle.run(2.0)
    assert circle.fates("ann", event) == {"bob": "at_relay"}
    if why == "retention":
        circle.run(120.0)
    else:
        circle.say("ann", *("y" * 400 for _ in range(6)))
        circle.run(120.0)
    gone = Kind.EXPIRED if why == "retention" else Kind.EVICTED
    assert event in [record.event for record in circle.records("r0", gone)]
    assert circle.fates("ann", event) == {"bob": "expired"}
    # It is not lost: its author has it, and whoever comes while the author is there gets it.
    circle.online("bob")
    circle.run(10.0)
    assert "x" * 400 in circle.heard("bob")
    assert circle.fates("ann", event) == {"bob": "delivered"}


def test_when_all_relays_are_gone_members_go_on_and_come_back_to_one_that_returns() -> None:
    circle = founded("ann", "bob", "r0", "r1")
    circle.offline("r0", "r1")
    circle.run(1.0)
    circle.say("ann", "no relay")
    circle.run(1.0)
    assert circle.heard("bob") == ["no relay"]
    circle.run(30.0)
    assert not any(relay.up for relay in circle.status("ann").relays)
    circle.online("r1")
    circle.run(60.0)
    (up,) = [relay.relay for relay in circle.status("ann").relays if relay.up]
    assert up == circle.peer("r1")
    circle.offline("bob")
    (event,) = circle.say("ann", "for later")
    circle.run(2.0)
    assert circle.fates("ann", event) == {"bob": "at_relay"}


def test_a_relay_that_cannot_be_reached_or_does_not_want_to_is_not_named() -> None:
    circle = Circle("ann", "bob", "r0", relay=RelayConfig(policy=RelayPolicy.ALLOW))
    circle.found("ann", "bob")
    before = circle.state("ann").digest
    refused = circle.declined("ann", AddRelay(circle.room, circle.contact("r0"), 5.0))
    assert refused.reason is Reason.NOT_ALLOWED
    circle.offline("r0")
    silent = circle.declined("ann", AddRelay(circle.room, circle.contact("r0"), 5.0))
    assert silent.reason in (Reason.TIMEOUT, Reason.UNREACHABLE, Reason.CONNECTION_REFUSED)
    circle.run(30.0)
    assert circle.state("ann").digest == before


@pytest.mark.parametrize("newcomers", [Newcomers.FROM_NOW, None])
@pytest.mark.parametrize("before", [0, 3])
@pytest.mark.parametrize(
    ("how", "reason"), [(Membership.BAN, Reason.BANNED), (Membership.LEAVE, Reason.NOT_A_MEMBER)]
)
def test_who_is_put_out_is_told_by_a_relay_when_nobody_else_is_there(
    how: Membership, reason: Reason, before: int, newcomers: Newcomers | None
) -> None:
    """With what that event builds on, and with nothing of what was said since."""
    circle = founded("ann", "bob", "r0", seed=41, newcomers=newcomers)
    circle.offline("bob")
    circle.run(5.0)
    for number in range(before):
        circle.get("ann", SetRetention(circle.room, 1_000.0 + number), Sent)
    circle.get("ann", SetMembership(circle.room, circle.person("bob"), how, "enough"), Sent)
    circle.get("ann", SetRetention(circle.room, 5_000.0), Sent)
    circle.say("ann", "not for bob")
    circle.run(5.0)
    circle.offline("ann")
    circle.run(1.0)
    circle.online("bob")
    circle.run(30.0)
    assert circle.status("bob").membership is how
    told = circle.declined("bob", SendToRoom(circle.room, (b"still here",)))
    assert told.reason is reason
    assert "not for bob" not in circle.heard("bob")
    assert circle.room_at("bob").view.retention() == (None if before == 0 else 1_000 * (1_000 + before - 1))


def test_who_is_put_out_tells_nobody_and_is_not_waited_for() -> None:
    """The ledger of a kick: at the others it arrives, at whom it is about nothing can be known."""
    circle = founded("ann", "bob", "cid", "r0", seed=43)
    put_out = circle.get("ann", SetMembership(circle.room, circle.person("bob"), Membership.LEAVE), Sent).ids[
        0
    ]
    circle.run(30.0)
    assert circle.status("bob").membership is Membership.LEAVE
    assert circle.fates("ann", put_out) == {"bob": "unknown", "cid": "delivered"}
    circle.offline("ann")
    circle.online("ann")
    circle.run(5.0)
    assert circle.fates("ann", put_out) == {"bob": "unknown", "cid": "delivered"}


def test_who_joins_while_only_relays_are_there_knows_what_the_invitation_called_the_room() -> None:
    circle = Circle("ann", "bob", "cid", "r0", seed=44)
    circle.found("ann", "bob", "r0")
    made = circle.ticket("ann")
    circle.run(5.0)
    circle.offline("ann", "bob")
    circle.run(2.0)
    contacts = (*made.contacts, circle.contact("r0"))
    circle.get("cid", JoinRoom(circle.room, made.ticket, contacts, called="tea"), RoomMade)
    assert circle.status("cid").name == "tea"
    circle.offline("cid")
    circle.online("cid")
    assert circle.status("cid").name == "tea"
    circle.online("ann")
    circle.run(5.0)
    circle.get("ann", SetState(circle.room, NAME, "", b"coffee"), Sent)
    circle.run(60.0)
    assert circle.status("cid").name == "coffee"


def with_a_phone(*names: str, seed: int) -> Devices:
    """Ann is in a room of these with a phone as well, which bob has let in."""
    circle = Devices(*names, "ann2", seed=seed)
    circle.found(*names)
    circle.join("ann2", by="bob")
    circle.read("ann2")
    circle.run(5.0)
    return circle


def test_what_one_device_leaves_the_other_leaves_too() -> None:
    circle = with_a_phone("ann", "bob", seed=47)
    circle.get("ann2", SetMembership(circle.room, circle.person("ann"), Membership.LEAVE), Sent)
    circle.run(3.0)
    assert isinstance(circle.ask("ann", SendToRoom(circle.room, (b"x",))), Declined)
    circle.say("bob", "alone")
    circle.run(2.0)
    assert circle.heard("ann") == circle.heard("ann2") == []


def revoke_ann(circle: Devices) -> None:
    """The thief's word: the phone, which spoke in good hands and is thus younger, revokes the laptop."""
    laptop = circle.identity["ann"].card.device
    circle.get("ann2", RevokeInRoom(circle.room, revoke(circle.person_key("ann"), laptop, 1)), Sent)


def answer(circle: Devices) -> None:
    """The owner's word."""
    phone = circle.identity["ann2"].card.device
    circle.get("ann", RevokeInRoom(circle.room, revoke(circle.person_key("ann"), phone, 2)), Sent)
    circle.run(120.0)


def is_revoked(circle: Circle, at: str, name: str) -> bool:
    return circle.room_at(at).view.is_revoked(circle.person("ann"), circle.identity[name].card.device)


def settled(circle: Circle, *names: str) -> None:
    """The phone is out for all of these, the laptop is not, and is heard."""
    for name in names:
        assert (is_revoked(circle, name, "ann2"), is_revoked(circle, name, "ann")) == (True, False), name
    circle.say("ann", "still me")
    circle.run(60.0)
    for name in names:
        assert "still me" in circle.heard(name)


@pytest.mark.parametrize("by_relay", [False, True])
@pytest.mark.parametrize("heard", [False, True])
def test_a_thief_with_a_younger_device_and_the_key_does_not_put_the_elder_out(
    heard: bool, by_relay: bool
) -> None:
    """The thief's word is first, and the owner is refused everywhere; the owner's answer settles it."""
    circle = with_a_phone("ann", "bob", "r0", seed=45)
    circle.get("ann2", SetRetention(circle.room, 1_000.0), Sent)
    circle.run(5.0)
    if not heard:
        circle.offline("ann")
        circle.run(1.0)
    revoke_ann(circle)
    circle.run(10.0)
    assert is_revoked(circle, "bob", "ann")
    if by_relay:
        circle.offline("bob", "ann2")
        circle.run(1.0)
    if not heard:
        circle.online("ann")
        circle.run(1.0)
    answer(circle)
    if by_relay:
        circle.offline("ann")
        circle.online("bob")
        circle.run(60.0)
        assert not is_revoked(circle, "bob", "ann")
        circle.online("ann")
        circle.run(60.0)
    settled(circle, "ann", "bob")


@pytest.mark.parametrize("heard", [False, True])
def test_nor_where_there_is_no_relay_that_would_take_the_answer(heard: bool) -> None:
    """Members refuse to talk with a device that was revoked, but for its own word about that."""
    circle = with_a_phone("ann", "bob", "cid", seed=46)
    circle.get("ann2", SetRetention(circle.room, 1_000.0), Sent)
    circle.run(5.0)
    if not heard:
        circle.offline("ann")
        circle.run(1.0)
    revoke_ann(circle)
    circle.run(60.0)
    if not heard:
        circle.online("ann")
        circle.run(1.0)
    answer(circle)
    settled(circle, "ann", "bob", "cid")
