"""Keys that the voice itself lacks: it asks the others who may speak, as soon as they are within reach."""

from __future__ import annotations

import pytest
from tests.places.sharing import COHOST, heard, run, shared_place
from tests.places.test_key_distribution import forget_keys

from linnet.core.reasons import Reason
from linnet.places.commands import Announce, Announced, Entered, EnterPlace
from linnet.places.deed import Policy
from linnet.sim.places_world import HOST, PlacesWorld

SEALED = (Policy.CLOSED, Policy.PRIVATE)
STRANGER = "guest3"


def words(world: PlacesWorld, name: str, text: str) -> int:
    """Something without a change of state."""
    return world.obtain(name, Announce(world.place, "_message", (), text.encode()), Announced).message


@pytest.mark.parametrize("policy", SEALED)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_host_who_speaks_again_is_told_keys_by_the_co_host_who_has_them_when_that_one_is_back(
    seed: int, policy: Policy
) -> None:
    world = shared_place(4, seed, entered=3, policy=policy)
    run(world, 40)
    world.crash(HOST)
    run(world, 1)
    secret = words(world, COHOST, "meanwhile")
    run(world, 5)
    world.crash(COHOST)
    forget_keys(world, HOST)
    run(world, 1)
    world.restart(HOST)
    run(world, 15)
    words(world, HOST, "back")
    run(world, 30)
    assert Reason.KEY_MISSING in {each.reason for each in world.lost[HOST] if each.first <= secret}
    assert secret not in world.said[HOST]
    world.restart(COHOST)
    run(world, 120)
    assert world.said[HOST][secret] == b"meanwhile"
    # What the host said before anybody came into a private place nobody else can read.
    assert world.status(HOST).locked == (0 if policy is Policy.CLOSED else 1)
    words(world, HOST, "all is well")
    run(world, 10)
    term = world.status(HOST).term
    run(world, 1200)
    assert world.status(HOST).term == term, "who cannot help takes no turn for it"
    for name in (HOST, COHOST, "guest2"):
        assert heard(world, name)[-1] == "all is well"


@pytest.mark.parametrize("seed", [1, 2])
def test_a_co_host_who_never_spoke_tells_the_keys_that_it_has(seed: int) -> None:
    world = shared_place(4, seed, cohosts=2, entered=3, policy=Policy.CLOSED)
    run(world, 40)
    world.crash(HOST)
    run(world, 1)
    secret = words(world, COHOST, "meanwhile")
    run(world, 5)
    world.crash(COHOST)
    world.crash("guest1")
    forget_keys(world, HOST)
    run(world, 1)
    world.restart(HOST)
    run(world, 15)
    words(world, HOST, "back")
    run(world, 30)
    assert secret not in world.said[HOST]
    world.restart("guest1")
    run(world, 120)
    assert world.said[HOST][secret] == b"meanwhile"


def test_a_guest_who_came_in_meanwhile_is_told_the_keys_too_when_the_host_has_them() -> None:
    world = shared_place(4, 6, entered=3, policy=Policy.CLOSED)
    run(world, 40)
    world.crash(HOST)
    run(world, 1)
    secret = words(world, COHOST, "meanwhile")
    run(world, 5)
    world.crash(COHOST)
    forget_keys(world, HOST)
    run(world, 1)
    world.restart(HOST)
    run(world, 15)
    words(world, HOST, "back")
    world.obtain(STRANGER, EnterPlace(world.place, (world.contact(HOST),), patience=30.0), Entered)
    world.watch(STRANGER)
    run(world, 30)
    assert secret not in world.said.get(STRANGER, {})
    world.restart(COHOST)
    run(world, 600)
    assert world.said[STRANGER][secret] == b"meanwhile"
