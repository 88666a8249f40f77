"""Who is let in, and when it is told so."""

from __future__ import annotations

import pytest
from tests.places.sharing import announced, bodies, entered_place

from linnet.core.effects import Send
from linnet.core.inputs import Received
from linnet.core.reasons import Reason
from linnet.places.channel.packet import Modifier
from linnet.places.commands import (
    Announce,
    Announced,
    ChangePlace,
    Eject,
    Entered,
    EnterPlace,
    Look,
    ObjectsAre,
    PlaceIs,
)
from linnet.places.deed import Policy
from linnet.places.door import make_enter
from linnet.places.messages import Decision
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.places.world import HOST, PlacesWorld
from linnet.testing.identities import known_identity


def test_who_knocks_at_a_guest_is_sent_on_to_who_can_let_it_in() -> None:
    world = PlacesWorld(3, seed=16)
    world.found()
    for name in world.guests[:2]:
        world.enter(name)
    world.network.run(world.network.elapsed + 5)
    world.obtain("guest2", EnterPlace(world.place, (world.contact("guest1"),)), Entered)
    assert world.status("guest2").role == "guest"
    assert world.status(HOST).guests == 3


@pytest.mark.parametrize("policy", list(Policy))
@pytest.mark.parametrize("loss", [0.0, 0.1])
def test_whoever_is_told_that_it_is_in_can_look_at_the_state(policy: Policy, loss: float) -> None:
    world = PlacesWorld(4, seed=17, links=LinkModel(named_latency("aws"), loss=loss))
    world.welcomes = True
    world.found(policy)
    for number in range(40):
        state = (Modifier("=", f"_shelf_{number}", b"x" * 3000),)
        world.obtain(HOST, Announce(world.place, "_message", state), Announced)
    for name in world.guests:
        world.obtain(name, EnterPlace(world.place, (world.contact(HOST),), patience=50.0), Entered)
        shelves = world.obtain(name, Look(world.place, "_shelf"), ObjectsAre).objects
        assert len(shelves) == 40, name


def test_who_was_ejected_from_a_public_place_stays_out_until_it_asks_and_then_comes_in_as_anybody() -> None:
    world = entered_place(2, 18)
    first = announced(world, b"one")
    world.network.run(world.network.elapsed + 3)
    world.obtain(HOST, Eject(world.place, world.identities["guest1"].author), Announced)
    announced(world, b"two")
    world.network.run(world.network.elapsed + 60)
    world.crash("guest1")
    world.restart("guest1")
    world.network.run(world.network.elapsed + 60)
    assert world.status("guest1").role == "outside", "it does not come back by itself"
    world.obtain("guest1", EnterPlace(world.place, (world.contact("guest0"),)), Entered)
    announced(world, b"three")
    world.network.run(world.network.elapsed + 30)
    assert bodies(world, "guest0", first) == [b"one", b"two", b"three"]
    assert bodies(world, "guest1", first) == [b"one", b"three"], "not what was said in between"
    assert world.status("guest1").role == "guest"


def test_who_waits_at_the_door_is_told_the_deed_if_it_does_not_know_this_one() -> None:
    world = PlacesWorld(1, seed=19)
    world.found(Policy.PRIVATE)
    world.obtain(HOST, ChangePlace(world.place, cohosts=(known_identity("ann").author,)), PlaceIs)
    who, deed = world.identities["guest0"], world.status(HOST).deed
    assert deed.version == 2
    for passed, (known, told) in enumerate(((0, deed), (1, deed), (2, None), (3, None))):
        at_ms = int(world.network.now * 1000) + passed
        asked = make_enter(who.device, who.card, world.place, at_ms, known=known)
        machine = world.network.machine(world.peer(HOST))
        effects = machine.handle(Received(who.peer, asked), world.network.now)
        decisions = [
            each.message for each in effects if isinstance(each, Send) and isinstance(each.message, Decision)
        ]
        assert [(each.reason, each.deed) for each in decisions] == [(Reason.WAITING, told)]
