"""What is decided in a room while nobody is in reach is kept, and goes out when somebody is."""

from __future__ import annotations

import pytest
from tests.rooms.circle import Circle, founded

from linnet.core.ids import DeviceId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.items import Unreadable
from linnet.identity.cards import revoke
from linnet.peer.interface import AnyCommand
from linnet.rooms.commands import AddRelay, DropRelay, ReadRoom, Redact, RevokeInRoom, Sent, SetMembership
from linnet.rooms.config import RoomsConfig
from linnet.rooms.event_types import Membership, Newcomers
from linnet.sim.nemesis.open_world import person_key
from linnet.trace.records import Kind


def alone(circle: Circle, name: str, command: AnyCommand, *others: str) -> None:
    """Ask for something while all others are away; then everybody restarts, whoever asked first."""
    circle.offline(*others)
    circle.run(1.0)
    circle.get(name, command, Sent)
    circle.run(5.0)
    circle.offline(name)
    circle.online(name)
    circle.run(120.0)
    circle.online(*others)
    circle.run(120.0)


@pytest.mark.parametrize("newcomers", [None, Newcomers.FROM_NOW])
@pytest.mark.parametrize("membership", [Membership.BAN, Membership.LEAVE])
def test_who_is_put_out_by_somebody_alone(membership: Membership, newcomers: Newcomers | None) -> None:
    circle = founded("ann", "bob", "cid", newcomers=newcomers)
    command = SetMembership(circle.room, circle.person("bob"), membership)
    alone(circle, "ann", command, "bob", "cid")
    for name in ("ann", "cid", "bob"):
        members = {each.person: each.membership for each in circle.state(name).members}
        assert members[circle.person("bob")] is membership, name


@pytest.mark.parametrize("newcomers", [None, Newcomers.FROM_NOW])
def test_what_is_taken_back_by_somebody_alone(newcomers: Newcomers | None) -> None:
    circle = founded("ann", "bob", newcomers=newcomers)
    (event,) = circle.say("ann", "oh")
    circle.run(3.0)
    assert circle.heard("bob") == ["oh"]
    alone(circle, "ann", Redact(circle.room, event), "bob")
    circle.items["bob"].clear()
    circle.ask("bob", ReadRoom(2, circle.room, 0.0, live=False, state=False))
    circle.run(3.0)
    gone = [item for item in circle.items["bob"] if isinstance(item, Unreadable)]
    assert [(item.event.id, item.reason) for item in gone] == [(event, Reason.REDACTED)]


def test_a_device_that_is_revoked_by_somebody_alone() -> None:
    circle = founded("ann", "bob")
    stolen = DeviceId(bytes(range(len(circle.identity["ann"].card.device))))
    person = person_key(circle.seed, "ann")
    alone(circle, "ann", RevokeInRoom(circle.room, revoke(person, stolen, int(circle.network.now))), "bob")
    room = circle.room_at("bob")
    assert room.view.is_revoked(circle.person("ann"), stolen)


class Dropping:
    """A room with a relay that is taken out of it by one of these, while it is away."""

    def __init__(self, *others: str, config: RoomsConfig | None = None) -> None:
        self.circle = Circle("ann", "bob", "r0", *others, config=config)
        self.circle.found("ann", "r0", *others, "bob")

    def serves(self, name: str = "r0") -> bool:
        relay = self.circle.rooms(name)._relay
        assert relay is not None
        return relay.serves(self.circle.room)

    @property
    def dismissed(self) -> tuple[PeerId, ...]:
        """Who is sought by whoever dropped the relay."""
        room = self.circle.room_at("ann")
        return tuple(room.dismissals.relays)


@pytest.mark.parametrize("how", ["drop", "kick"])
def test_a_relay_that_is_dropped_while_it_is_away_stops_when_it_is_back(how: str) -> None:
    world = Dropping()
    circle = world.circle
    kick = SetMembership(circle.room, circle.person("r0"), Membership.LEAVE)
    command = DropRelay(circle.room, circle.peer("r0")) if how == "drop" else kick
    alone(circle, "ann", command, "r0", "bob")
    assert not world.serves()
    assert world.dismissed == ()


def test_a_relay_that_is_named_again_is_not_sought_to_hear_that_it_was_dropped() -> None:
    world = Dropping()
    circle = world.circle
    circle.offline("r0")
    circle.run(1.0)
    circle.get("ann", DropRelay(circle.room, circle.peer("r0")), Sent)
    assert world.dismissed == (circle.peer("r0"),)
    circle.online("r0")
    circle.run(60.0)
    circle.get("ann", AddRelay(circle.room, circle.contact("r0")), Sent)
    circle.run(10.0)
    assert world.serves()
    assert not world.dismissed


@pytest.mark.parametrize(("seconds", "is_sought"), [(-40.0, True), (40.0, False)])
def test_a_relay_that_never_comes_back_is_given_up_with_a_record(seconds: float, is_sought: bool) -> None:
    config = RoomsConfig(leave_patience=600.0)
    world = Dropping(config=config)
    circle = world.circle
    circle.offline("r0")
    circle.run(1.0)
    circle.get("ann", DropRelay(circle.room, circle.peer("r0")), Sent)
    circle.run(config.leave_patience + seconds)
    assert bool(world.dismissed) == is_sought
    note = "a relay that was dropped was not in reach to hear of it"
    given_up = [(each.peer, each.reason, each.note) for each in circle.records("ann", Kind.EXPIRED)]
    assert given_up == ([] if is_sought else [(circle.peer("r0"), Reason.TIMEOUT, note)])
