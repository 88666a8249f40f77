"""The relay role as a whole: what members and other relays see of it."""

from __future__ import annotations

from tests.rooms.relay.scenes import World


def test_it_works() -> None:
    world = World("r0", "r1")
    world.link("r0", "ann")
    hello = world.say("ann")
    outcome = world.send("r0", "ann", hello)
    assert [o.reason for o in outcome] == [None]
    world.link("r1", "ben")
    page = world.resync("r1", "ben")
    assert world.said(page) == [b"hello"]
    page = world.resync("r1", "ben", page.next)
    assert world.said(page) == []
