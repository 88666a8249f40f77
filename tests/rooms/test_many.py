"""Several devices of one person, several rooms over one link, and people who come and go."""

from __future__ import annotations

from tests.rooms.circle import Circle

from linnet.core.ids import TopicId
from linnet.delivery.commands import Declined
from linnet.event.event import Event
from linnet.identity.cards import CARD_DAYS, issue_card
from linnet.identity.keys import SigningKey
from linnet.peer.config import Identity
from linnet.rooms.commands import (
    CreateRoom,
    ForgetRoom,
    JoinRoom,
    MakeTicket,
    ReadRoom,
    SendToRoom,
    SetMembership,
)
from linnet.rooms.content import Membership
from linnet.rooms.results import RoomMade, Sent, TicketMade
from linnet.rooms.status import state_of
from linnet.sim.luck import SeededEntropy
from linnet.trace.records import Kind


class Devices(Circle):
    """`ann2` is another device of ann."""

    def _identity(self, name: str) -> Identity:
        if not name.endswith("2"):
            return super()._identity(name)
        person = SigningKey.generate(SeededEntropy(self.seed, f"identity/{name[:-1]}"))
        device = SigningKey.generate(SeededEntropy(self.seed, f"device/{name}"))
        first = int(self.network.now)
        return Identity(device, issue_card(person, device.public, first, first + CARD_DAYS * 86_400, name))


def second_device() -> Devices:
    circle = Devices("ann", "ann2", "bob")
    assert circle.person("ann") == circle.person("ann2")
    circle.found("ann", "bob")
    circle.get("ann2", JoinRoom(circle.room, None, (circle.contact("ann"),)), RoomMade)
    circle.read("ann2")
    circle.run(3.0)
    return circle


def test_two_devices_of_one_person_hear_and_speak_each_for_itself() -> None:
    circle = second_device()
    circle.say("ann", "from my desk")
    circle.run(0.5)
    circle.say("ann2", "from my pocket")
    circle.run(0.5)
    circle.say("bob", "hello both")
    circle.run(3.0)
    for name in ("ann", "ann2", "bob"):
        assert circle.heard(name) == ["from my desk", "from my pocket", "hello both"]
    assert len({circle.state(name).digest for name in ("ann", "ann2", "bob")}) == 1
    chains = {
        (item.device, item.seq)
        for item in circle.items["bob"]
        if isinstance(item, Event) and item.author == circle.person("ann")
    }
    assert len(chains) == 2


def test_the_ledger_knows_people_and_not_ones_own_other_device() -> None:
    circle = second_device()
    circle.offline("bob")
    (event,) = circle.say("ann", "for bob")
    circle.run(3.0)
    assert circle.heard("ann2") == ["for bob"]
    assert circle.fates("ann", event) == {"bob": "pending"}
    circle.online("bob")
    circle.run(5.0)
    assert circle.fates("ann", event) == {"bob": "delivered"}


def test_what_one_device_leaves_the_other_leaves_too() -> None:
    circle = second_device()
    circle.get("ann2", SetMembership(circle.room, circle.person("ann"), Membership.LEAVE), Sent)
    circle.run(3.0)
    assert isinstance(circle.ask("ann", SendToRoom(circle.room, (b"x",))), Declined)
    circle.say("bob", "alone")
    circle.run(2.0)
    assert circle.heard("ann") == circle.heard("ann2") == []


def ticket(circle: Circle, by: str, room: TopicId) -> TicketMade:
    expires = int((circle.network.now + 3600.0) * 1000)
    return circle.get(by, MakeTicket(room, expires), TicketMade)


def test_several_rooms_share_a_link_and_nothing_else() -> None:
    circle = Circle("ann", "bob", "cid")
    rooms = [circle.get("ann", CreateRoom(f"room {number}"), RoomMade).room for number in range(3)]
    for number, room in enumerate(rooms):
        for name in ("bob", "cid")[: 1 + number % 2]:
            made = ticket(circle, "ann", room)
            circle.get(name, JoinRoom(room, made.ticket, made.contacts), RoomMade)
            circle.ask(name, ReadRoom(10 + number, room, 0.0, None, state=False))
    for number, room in enumerate(rooms):
        circle.get("ann", SendToRoom(room, (f"in room {number}".encode(),)), Sent)
    circle.run(3.0)
    assert sorted(circle.heard("bob")) == ["in room 0", "in room 1", "in room 2"]
    assert circle.heard("cid") == ["in room 1"]
    assert len(circle.network.linked(circle.peer("bob"))) <= 2
    circle.get("ann", SetMembership(rooms[1], circle.person("bob"), Membership.BAN), Sent)
    circle.run(1.0)
    for room in rooms:
        circle.get("ann", SendToRoom(room, (b"after",)), Sent)
    circle.run(3.0)
    assert circle.heard("bob").count("after") == 2
    assert circle.heard("cid").count("after") == 1


def test_who_is_put_out_and_let_in_again_goes_on() -> None:
    circle = Circle("ann", "bob", "cid", "r0")
    circle.found("ann", "bob", "cid", "r0")
    for number, how in enumerate((Membership.BAN, Membership.LEAVE, Membership.BAN)):
        circle.get("ann", SetMembership(circle.room, circle.person("bob"), how), Sent)
        circle.run(2.0)
        circle.say("cid", f"without {number}")
        circle.run(1.0)
        if how is Membership.BAN:
            circle.get("ann", SetMembership(circle.room, circle.person("bob"), Membership.LEAVE), Sent)
            circle.run(1.0)
        circle.join("bob", by="ann")
        circle.run(3.0)
        circle.say("bob", f"back {number}")
        circle.run(2.0)
    assert circle.heard("ann") == circle.heard("cid")
    assert sorted(circle.heard("bob")) == sorted(circle.heard("ann"))  # what it missed, it was given
    assert len({circle.state(name).digest for name in ("ann", "bob", "cid")}) == 1
    circle.offline("bob")
    circle.online("bob")
    circle.run(3.0)
    circle.say("ann", "still there?")
    circle.run(2.0)
    assert circle.heard("bob")[-1] == "still there?"


def test_who_leaves_while_nobody_is_there_is_known_to_have_left_later() -> None:
    circle = Circle("ann", "bob")
    circle.found("ann", "bob")
    circle.offline("ann")
    circle.get("bob", SetMembership(circle.room, circle.person("bob"), Membership.LEAVE), Sent)
    circle.run(2.0)
    circle.offline("bob")
    circle.online("bob")
    circle.online("ann")
    circle.run(45.0)
    members = {each.person: each.membership for each in circle.state("ann").members}
    assert members[circle.person("bob")] is Membership.LEAVE
    assert circle.rooms("bob")._registry.get(circle.room) is not None
    assert not circle.rooms("bob")._registry.get(circle.room).is_present  # type: ignore[union-attr]


def test_who_leaves_with_only_a_relay_there_is_known_to_have_left() -> None:
    circle = Circle("ann", "bob", "r0")
    circle.found("ann", "bob", "r0")
    circle.offline("ann")
    circle.get("bob", SetMembership(circle.room, circle.person("bob"), Membership.LEAVE), Sent)
    circle.run(5.0)
    circle.offline("bob")
    circle.online("ann")
    circle.run(10.0)
    members = {each.person: each.membership for each in circle.state("ann").members}
    assert members[circle.person("bob")] is Membership.LEAVE


def test_who_was_put_out_while_away_learns_it() -> None:
    circle = Circle("ann", "bob", "cid")
    circle.found("ann", "bob", "cid")
    circle.offline("bob")
    circle.get("ann", SetMembership(circle.room, circle.person("bob"), Membership.BAN, "rude"), Sent)
    circle.run(2.0)
    circle.online("bob")
    circle.run(10.0)
    declined = circle.declined("bob", SendToRoom(circle.room, (b"x",)))
    assert declined.reason.value == "banned"


def test_the_last_who_leaves_a_forgotten_room_is_gone_from_it() -> None:
    circle = Circle("ann", "bob")
    circle.found("ann", "bob")
    circle.ask("bob", ForgetRoom(circle.room))
    circle.run(3.0)
    room = circle.rooms("ann")._registry.get(circle.room)
    assert room is not None
    assert room.view.membership(circle.person("bob")) is Membership.LEAVE
    assert state_of(room).members
    assert not [record for record in circle.records("ann", Kind.DROPPED) if record.reason is None]
