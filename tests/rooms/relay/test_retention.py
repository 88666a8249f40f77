"""How long a relay keeps what is said."""

from __future__ import annotations

from msgspec.structs import replace
from tests.rooms.relay.scenes import OPEN, World

from linnet.core.reasons import Reason
from linnet.rooms.relay.event_cache import ExpiryDue
from linnet.trace.records import Kind


def test_the_rooms_state_says_for_all_relays() -> None:
    world = World("r0", "r1", met=("ann",))
    world.send("r0", "ann", world.keep_for(60_000), world.say("ann"))
    for name in ("r0", "r1"):
        assert world.station(name).timers[ExpiryDue(world.room)] <= 60.1
        world.link(name, "ben")
        assert world.said(world.resync(name, "ben")) == [b"hello"]
    world.now += 61
    for name in ("r0", "r1"):
        assert world.said(world.resync(name, "ben")) == []
        (gone,) = world.station(name).noted(Kind.EXPIRED)
        assert (gone.reason, gone.note) == (Reason.RETENTION, "message")


def test_it_is_kept_to_the_very_end_and_not_longer() -> None:
    world = World("r0", config=replace(OPEN, max_lifetime=60.0), met=("ann",))
    hello = world.say("ann")
    world.send("r0", "ann", hello)
    world.now += 60
    assert world.said(world.resync("r0", "ann")) == [b"hello"]
    assert world.want("r0", "ann", hello).units == (world.unit(hello),)
    world.now += 0.01
    assert world.want("r0", "ann", hello).units == ()
    assert world.station("r0").noted(Kind.EXPIRED) == []  # It is still there.
    assert world.said(world.resync("r0", "ann")) == []


def test_nothing_expires_where_the_room_wants_that() -> None:
    world = World("r0", config=replace(OPEN, max_lifetime=60.0), met=("ann",))
    world.send("r0", "ann", world.keep_for(None), world.say("ann"))
    world.now += 10**7
    station = world.station("r0")
    assert world.said(world.resync("r0", "ann")) == [b"hello"]
    assert ExpiryDue(world.room) not in station.timers


def test_only_who_has_the_power_changes_it() -> None:
    world = World("r0", met=("ann", "ben"))
    before = world.control
    short = world.chronicle.sign("ben", "retention", "", b"\x91\x01", before)
    assert world.send("r0", "ben", short)[0].reason is Reason.NO_POWER
