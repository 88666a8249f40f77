"""Guests who were put out while they were away, and came in again without having heard of it."""

from __future__ import annotations

import pytest
from tests.places.sharing import heard, run, says
from tests.places.test_receipts import states

from linnet.places.commands import Announced, Eject
from linnet.sim.places_world import HOST, PlacesWorld


@pytest.mark.parametrize("seed", [1, 2])
def test_what_was_said_while_it_was_out_is_closed_to_it_and_not_missing(seed: int) -> None:
    """One of those above it says that it may not see that, the other came later and does not have it: so
    neither of them can settle it. The notice that let it in again does."""
    world = PlacesWorld(2, seed)
    world.found()
    back, late = world.guests
    world.enter(back)
    says(world, HOST, "in")
    run(world, 5)
    world.crash(back)
    world.obtain(HOST, Eject(world.place, world.identities[back].author), Announced)
    for number in range(5):
        says(world, HOST, f"out {number}")
    world.enter(late)
    world.restart(back)
    run(world, 60)
    assert {*world.status(back).upstreams} == {world.peer(HOST), world.peer(late)}
    last = says(world, HOST, "in again")
    run(world, 60)
    assert heard(world, back) == ["in", "in again"]
    assert world.status(back).missing == 0
    assert states(world, HOST, last)[back] == "delivered"
