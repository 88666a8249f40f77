"""A sealed place that host and co-host share: halves that part and meet again read one line."""

from __future__ import annotations

import pytest
from tests.places.sharing import COHOST, assert_one_line, heard, run, says, share, split

from linnet.places.commands import EnterPlace
from linnet.places.deed import Policy
from linnet.sim.places.world import HOST, PlacesWorld


def shared(guests: int, seed: int, entering: int) -> PlacesWorld:
    world = PlacesWorld(guests, seed)
    world.welcomes = True
    world.found(Policy.CLOSED)
    for name in world.guests[:entering]:
        world.enter(name)
    share(world, COHOST)
    return world


@pytest.mark.parametrize("seed", [1, 2])
def test_two_halves_that_meet_again_read_what_each_has_said(seed: int) -> None:
    world = shared(3, seed, 3)
    says(world, HOST, "together")
    run(world, 5)
    split(world, COHOST, "guest2")
    run(world, 30)
    says(world, HOST, "here")
    says(world, COHOST, "there")
    run(world, 60)
    world.network.heal()
    run(world, 300)
    texts = heard(world, HOST)
    assert sorted(texts) == ["here", "there", "together"]
    assert_one_line(world, texts)
    assert all(world.status(name).locked == 0 for name in (HOST, *world.guests))


def test_whoever_came_in_on_the_side_that_was_cut_is_told_the_keys_when_that_is_said_again() -> None:
    world = shared(3, 3, 2)
    says(world, HOST, "together")
    run(world, 5)
    split(world, COHOST, "guest1")
    run(world, 30)
    world.ask("guest2", EnterPlace(world.place, (world.contact(HOST),), patience=60.0))
    run(world, 10)
    world.watch("guest2")
    says(world, COHOST, "there")
    run(world, 60)
    world.network.heal()
    run(world, 300)
    last = says(world, HOST, "together again")
    run(world, 60)
    assert world.said["guest2"][last] == b"together again"
    assert world.status("guest2").locked == 0
