"""Answering members who were away, and what is recorded of it."""

from __future__ import annotations

from tests.rooms.relay.scenes import World, peer_of

from linnet.core.reasons import Reason
from linnet.rooms.messages import RelayCursor
from linnet.trace.records import Kind, Record


def test_the_records_of_a_resync() -> None:
    world = World("r0")
    for who in ("ann", "ben"):
        world.link("r0", who)
    before = world.resync("r0", "ben").next
    world.send("r0", "ann", world.say("ann"), world.say("ann"))
    station = world.station("r0")
    station.records.clear()
    world.resync("r0", "ben", before)
    ben = peer_of("ben")
    assert station.noted(Kind.RESYNC) == [
        Record(Kind.RESYNC, world.room, peer=ben, note="receive-resync"),
        Record(Kind.RESYNC, world.room, events=2, peer=ben, note="reply-resync"),
    ]
    station.records.clear()
    world.resync("r0", "ben", RelayCursor(b"another.", 1))
    assert station.noted(Kind.RESYNC)[-1] == Record(
        Kind.RESYNC, world.room, events=0, peer=ben, reason=Reason.CURSOR_EXPIRED, note="reject-resync"
    )


def test_only_who_is_being_asked_waits() -> None:
    world = World("r0")
    world.tell("r0", "eve", world.greet("eve"))
    assert world.resync("r0", "eve").reason is Reason.NOT_A_MEMBER
    world.tell("r0", "dan", world.greet("dan", control=(world.say("dan").id,)))
    world.unlink("r0", "dan")
    world.tell("r0", "dan", world.greet("dan", control=world.control))
    assert world.resync("r0", "dan").reason is Reason.NOT_A_MEMBER
