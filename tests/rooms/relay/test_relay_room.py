"""One room at a relay: its parts together, where no other test has them."""

from __future__ import annotations

from tests.rooms.chronicle import Chronicle
from tests.rooms.relay.scenes import World, peer_of

from linnet.core.reasons import Reason
from linnet.rooms.commands import RelayStatus, RoomStatus
from linnet.rooms.event_types import Membership
from linnet.rooms.messages import RelaySend, RelayTaken, ResyncPage
from linnet.trace.records import Kind


def test_how_a_room_stands() -> None:
    world = World("r0", "r1", met=("ann",))
    world.send("r0", "ann", world.say("ann"))
    world.join("cyd")
    world.send("r0", "ann", world.say("ann"))
    (status,) = world.station("r0").relay.status()
    other = RelayStatus(peer_of("r1"), ("tls://r1:1",), True, True, None, None, None)
    assert status == RoomStatus(
        world.room,
        None,
        Membership.JOIN,
        True,
        4,
        (peer_of("r1"), peer_of("ann")),
        (other,),
        1,
        len(world.control_units()) - 2,
        1,
        1,
        1,
        0,
        0,
        0,
    )


def test_rooms_do_not_see_each_other() -> None:
    world = World("r0", met=("ann",))
    world.send("r0", "ann", world.say("ann", b"here"))
    second = World()
    second.chronicle = Chronicle("ann", room=1)
    second.control = (second.chronicle.create.id,)
    second.membership("ann", "ann", Membership.JOIN)
    second.name_relay("r0")
    second.stations, second.inbox = world.stations, world.inbox
    second.admit("r0")
    second.link("r0", "ann")
    second.send("r0", "ann", second.say("ann", b"there"))
    assert world.said(world.resync("r0", "ann")) == [b"here"]
    assert second.said(second.resync("r0", "ann")) == [b"there"]
    second.tell("r0", "ben", second.greet("ben"))
    assert second.resync("r0", "ben").reason is Reason.NOT_A_MEMBER
    crossed = RelaySend(second.room, 1, (world.unit(world.say("ann")),), ())
    (taken,) = second.tell("r0", "ann", crossed)
    assert isinstance(taken, RelayTaken)
    assert taken.outcomes[0].reason is Reason.UNKNOWN_ROOM
    assert len(world.station("r0").relay.status()) == 2
    world.restart("r0")
    assert {status.room for status in world.station("r0").relay.status()} == {world.room, second.room}


def test_a_relay_that_was_dropped_while_it_was_away_stops_when_it_learns_it() -> None:
    world = World("r0", "r1")
    world.part("r0", "r1")
    world.link("r0", "ben")
    page = world.resync("r0", "ben", follow=True)
    world.link("r1", "ann")
    world.name_relay("r0", active=False)
    world.send("r1", "ann", world.chronicle.event(world.control[0]))
    assert world.station("r0").relay.serves(world.room)
    before = len(world.inbox[peer_of("ben")])
    world.send("r0", "ben", world.chronicle.event(world.control[0]))
    assert not world.station("r0").relay.serves(world.room)
    ended = [each for each in world.inbox[peer_of("ben")][before:] if isinstance(each, ResyncPage)]
    assert (ended[-1].request, ended[-1].reason) == (page.request, Reason.NOT_A_RELAY)


def test_what_waits_when_it_is_dropped_is_refused() -> None:
    world = World("r0", met=("ann",))
    world.join("cyd")
    before = len(world.inbox[peer_of("ann")])
    waiting = world.say("ann")
    assert world.send("r0", "ann", waiting) == ()
    stem = world.chronicle.events[-4].id
    world.control = (stem,)
    world.name_relay("r0", active=False)
    world.send("r0", "ann", world.chronicle.event(world.control[0]))
    taken = [each for each in world.inbox[peer_of("ann")][before:] if isinstance(each, RelayTaken)]
    reasons = {each.event: each.reason for one in taken for each in one.outcomes}
    assert reasons[waiting.id] is Reason.NOT_A_RELAY


def test_a_relay_whose_person_is_put_out_stops() -> None:
    world = World("r0", met=("ann",))
    world.send("r0", "ann", world.membership("ann", "r0", Membership.LEAVE))
    assert not world.station("r0").relay.serves(world.room)
    published = world.station("r0").noted(Kind.PUBLISHED)
    assert len(published) == 1  # its join; there is nothing to leave
