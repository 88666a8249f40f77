"""Two are put out at the same time, so that everybody has to heal: one does it for all, not all at once."""

from __future__ import annotations

from tests.rooms.circle import Circle

from linnet.groups import agreement
from linnet.groups.bodies import Update, decode_body
from linnet.rooms.commands import Sent, SetLevel, SetMembership
from linnet.rooms.event_types import GROUP, Membership, Newcomers

SIZE = 16
MOST = 2
"""Updates after one such event."""


def updates(world: Circle) -> int:
    events = (verified.events[0] for verified in world.room_at("m0").memory.events())
    return sum(isinstance(decode_body(event.body), Update) for event in events if event.kind == GROUP)


def needing(world: Circle, names: list[str]) -> list[str]:
    states = {name: world.group(name).state(world.network.now) for name in names}
    return [name for name, state in states.items() if agreement.needs_heal(state)]


def test_of_sixteen_at_most_two_heal_and_all_are_healed() -> None:
    names = [f"m{number}" for number in range(SIZE)]
    world = Circle(*names)
    world.found(*names, newcomers=Newcomers.FROM_NOW)
    world.run(30.0)
    world.get("m0", SetLevel(world.room, 50, person=world.person("m1")), Sent)
    world.run(5.0)
    sides = [names[0::2], names[1::2]]
    world.network.partition([[world.peer(name) for name in side] for side in sides])
    world.run(2.0)
    for by, out in (("m0", "m14"), ("m1", "m15")):
        world.get(by, SetMembership(world.room, world.person(out), Membership.BAN), Sent)
    world.run(10.0)
    before, rest = updates(world), names[:14]
    assert needing(world, rest) == []
    world.network.heal()
    worst = 0
    for _ in range(100):
        world.run(0.2)
        worst = max(worst, len(needing(world, rest)))
    assert worst > MOST
    world.run(60.0)
    assert needing(world, rest) == []
    assert 0 < updates(world) - before <= MOST
    world.say("m5", "healed")
    world.run(5.0)
    assert all(world.heard(name)[-1] == "healed" for name in rest)
