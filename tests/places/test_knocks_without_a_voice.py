"""At the door of somebody who may speak while the voice of the place is away: it takes its turn to decide."""

from __future__ import annotations

import pytest
from tests.places.sharing import COHOST, run, says, shared_place

from linnet.core.reasons import Reason
from linnet.machine.commands import Declined
from linnet.places.commands import Admit, Announced, AtDoor, Entered, EnterPlace, GuestsAre, ListGuests
from linnet.places.deed import Policy
from linnet.sim.places.world import HOST, PlacesWorld

STRANGER = "guest3"
ADMITTING = (Policy.CLOSED, Policy.PRIVATE)


def knock(world: PlacesWorld, at: str, waits: bool = True, patience: float = 20.0) -> EnterPlace:
    return EnterPlace(world.place, (world.contact(at),), (), b"", patience, waits)


def host_back_and_voice_away(policy: Policy, seed: int, cohosts: int = 1) -> PlacesWorld:
    """The last co-host spoke while the host was away; now the host is back, and no co-host is there."""
    world = shared_place(4, seed, cohosts, entered=3, policy=policy)
    world.welcomes = False
    world.crash(HOST)
    run(world, 1)
    for name in world.guests[:cohosts]:
        says(world, name, f"{name} speaks")
    run(world, 5)
    world.restart(HOST)
    run(world, 30)
    for name in world.guests[:cohosts]:
        world.crash(name)
    run(world, 1)
    return world


@pytest.mark.parametrize("cohosts", [1, 2])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_host_who_is_back_lets_strangers_in_while_the_co_host_who_spoke_is_away(
    seed: int, cohosts: int
) -> None:
    world = host_back_and_voice_away(Policy.PUBLIC, seed, cohosts)
    world.obtain(STRANGER, knock(world, HOST), Entered)
    assert world.status(HOST).voice == world.identities[HOST].peer
    world.watch(STRANGER)
    says(world, HOST, "welcome")
    run(world, 5)
    assert b"welcome" in world.said[STRANGER].values()


@pytest.mark.parametrize("policy", ADMITTING)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_host_who_is_back_is_told_who_knocks_while_the_co_host_who_spoke_is_away(
    seed: int, policy: Policy
) -> None:
    world = host_back_and_voice_away(policy, seed)
    world.obtain(STRANGER, knock(world, HOST, waits=False), AtDoor)
    nym = world.identities[STRANGER].author
    assert world.obtain(HOST, ListGuests(world.place), GuestsAre).waiting == (nym,)
    assert [each.nym for each in world.knocked][-1] == nym
    world.obtain(HOST, Admit(world.place, nym), Announced)
    run(world, 10)
    assert world.status(STRANGER).role == "guest"
    world.watch(STRANGER)
    says(world, HOST, "welcome")
    run(world, 5)
    assert b"welcome" in world.said[STRANGER].values()


@pytest.mark.parametrize("policy", [Policy.PUBLIC, Policy.CLOSED])
def test_a_host_that_comes_back_to_nobody_lets_strangers_in(policy: Policy) -> None:
    world = shared_place(4, 4, entered=3, policy=policy)
    world.crash(HOST)
    run(world, 1)
    says(world, COHOST, "meanwhile")
    run(world, 5)
    world.restart(HOST)
    run(world, 10)
    for name in world.guests[:3]:
        world.crash(name)
    world.crash(HOST)
    run(world, 1)
    world.restart(HOST)
    world.obtain(STRANGER, knock(world, HOST), Entered)


@pytest.mark.parametrize("policy", [Policy.PUBLIC, Policy.CLOSED])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_co_host_lets_strangers_in_while_the_host_is_away(seed: int, policy: Policy) -> None:
    world = shared_place(4, seed, entered=3, policy=policy)
    world.crash(HOST)
    run(world, 1)
    world.obtain(STRANGER, knock(world, COHOST), Entered)
    world.restart(HOST)
    run(world, 30)
    says(world, HOST, "back")
    run(world, 10)
    assert b"back" in world.said[COHOST].values()
    statuses = world.statuses((HOST, COHOST, STRANGER))
    assert len({(each.term, each.fragment, each.state_hash) for each in statuses}) == 1


@pytest.mark.parametrize("policy", [Policy.PUBLIC, Policy.CLOSED])
def test_a_knock_takes_the_voice_from_nobody_who_is_within_reach(policy: Policy) -> None:
    world = shared_place(4, 5, entered=3, policy=policy)
    says(world, COHOST, "my turn")
    run(world, 5)
    term = world.status(HOST).term
    world.obtain(STRANGER, knock(world, HOST), Entered)
    assert world.status(HOST).voice == world.identities[COHOST].peer
    assert world.status(HOST).term == term


def test_a_voice_that_is_there_when_it_is_dialled_decides_itself() -> None:
    world = shared_place(4, 6, entered=3)
    says(world, COHOST, "my turn")
    run(world, 5)
    world.crash(HOST)
    run(world, 1)
    world.restart(HOST)
    term = world.status(HOST).term
    world.obtain(STRANGER, knock(world, HOST), Entered)
    assert world.status(HOST).term == term


def test_a_guest_who_may_not_speak_lets_nobody_in_while_the_voice_is_away() -> None:
    world = shared_place(4, 7, entered=3)
    world.crash(HOST)
    world.crash(COHOST)
    run(world, 1)
    assert world.obtain(STRANGER, knock(world, "guest2"), Declined).reason is Reason.TIMEOUT
