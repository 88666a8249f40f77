"""What was set in a place stays set, whatever is cut: the state is that which follows from the words."""

from __future__ import annotations

import pytest
from tests.places.recounting import Recount, objects, set_to
from tests.places.sharing import COHOST, everybody, run, shared_place, split

from linnet.places.commands import Announced, HostPlace, PlaceIs
from linnet.sim.places_world import HOST, PlacesWorld


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_is_forgotten_when_host_and_co_host_part_and_a_guest_comes_in_meanwhile(seed: int) -> None:
    world = shared_place(4, seed, entered=3)
    recount = Recount(world)
    recount.announce(HOST, "hello", set_to("_name", "tea"), set_to("_topic", "cake"))
    run(world, 5)
    split(world, COHOST, "guest1")
    run(world, 10)
    recount.announce(COHOST, "a plain word")
    world.enter("guest3")
    run(world, 20)
    world.network.heal()
    run(world, 300)
    recount.announce(HOST, "and on")
    run(world, 20)
    recount.check(HOST, COHOST, "guest1", "guest2")
    assert objects(world, HOST) == {"_name": b"tea", "_topic": b"cake"}


def test_the_first_change_on_either_side_of_a_split_stays() -> None:
    world = PlacesWorld(1, seed=4)
    world.found()
    people = (world.identities[COHOST].author,)
    world.obtain(HOST, HostPlace(world.place, cohosts=people), PlaceIs)
    world.enter(COHOST)  # by the deed: no notice, and so nothing that would be state
    run(world, 10)
    split(world, COHOST)
    run(world, 10)
    recount = Recount(world)
    asked = [
        recount.announce(HOST, "here", set_to("_topic", "cake")),
        recount.announce(COHOST, "there", set_to("_name", "tea")),
    ]
    run(world, 30)
    assert all(isinstance(world.network.answers[each], Announced) for each in asked)
    world.network.heal()
    run(world, 300)
    recount.check(*everybody(world))
    assert objects(world, HOST) == {"_name": b"tea", "_topic": b"cake"}
