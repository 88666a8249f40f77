"""Keys of a voice that is away: the host finds them in what was said meanwhile, whoever can be asked."""

from __future__ import annotations

import pytest
from tests.places.sharing import COHOST, heard, run, says, share, shared_place

from linnet.places.commands import Entered, EnterPlace
from linnet.places.deed import Policy
from linnet.sim.places_world import HOST, PlacesWorld

SEALED = (Policy.CLOSED, Policy.PRIVATE)
STRANGER = "guest3"


def host_alone_with_guests(world: PlacesWorld, cohosts: int) -> None:
    """Each co-host speaks while the host is away, and is away when the host is back."""
    run(world, 40)
    world.crash(HOST)
    run(world, 1)
    for name in world.guests[:cohosts]:
        says(world, name, f"{name} speaks")
    run(world, 5)
    for name in world.guests[:cohosts]:
        world.crash(name)
    run(world, 1)
    world.restart(HOST)
    run(world, 15)


@pytest.mark.parametrize("policy", SEALED)
@pytest.mark.parametrize("cohosts", [1, 2])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_host_reads_what_co_hosts_said_meanwhile_though_they_are_away(
    seed: int, cohosts: int, policy: Policy
) -> None:
    world = shared_place(4, seed, cohosts, entered=3, policy=policy)
    host_alone_with_guests(world, cohosts)
    said = [f"{name} speaks" for name in world.guests[:cohosts]]
    assert heard(world, HOST) == said
    assert world.status(HOST).locked == 0
    says(world, HOST, "back")
    world.obtain(STRANGER, EnterPlace(world.place, (world.contact(HOST),), patience=30.0), Entered)
    world.watch(STRANGER)
    says(world, HOST, "welcome")
    run(world, 10)
    before = [] if policy is Policy.PRIVATE else [*said, "back"]
    assert heard(world, STRANGER) == [*before, "welcome"]
    for name in world.guests[:cohosts]:
        world.restart(name)
    run(world, 60)
    for name in (HOST, *world.guests[:3]):
        assert heard(world, name) == [*said, "back", "welcome"], name


@pytest.mark.parametrize("policy", SEALED)
def test_the_host_lets_strangers_in_though_a_co_host_changed_the_state_meanwhile(policy: Policy) -> None:
    world = shared_place(4, 4, entered=3, policy=policy)
    host_alone_with_guests(world, 1)
    world.obtain(STRANGER, EnterPlace(world.place, (world.contact(HOST),), patience=30.0), Entered)


@pytest.mark.parametrize("policy", SEALED)
def test_a_co_host_who_was_named_before_it_came_in_seals_to_the_host_too(policy: Policy) -> None:
    world = shared_place(4, 7, entered=0, policy=policy)
    for name in world.guests[:3]:
        world.enter(name)
    host_alone_with_guests(world, 1)
    assert heard(world, HOST) == [f"{COHOST} speaks"]


def test_a_co_host_who_is_named_later_tells_the_host_its_keys() -> None:
    world = shared_place(4, 5, cohosts=0, entered=3, policy=Policy.CLOSED)
    says(world, HOST, "before")
    share(world, COHOST)
    host_alone_with_guests(world, 1)
    assert heard(world, HOST) == ["before", f"{COHOST} speaks"]
