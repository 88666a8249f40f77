"""Guests whose admission was cut out of the line: they come in by the one that is said again."""

from __future__ import annotations

import pytest
from tests.places.recounting import Recount, set_to
from tests.places.sharing import COHOST, everybody, heard, run, says, share, shared_place, split
from tests.places.test_receipts import states

from linnet.places.commands import Announced, Eject, GuestsAre, LeavePlace, ListGuests, Talked
from linnet.places.deed import Policy
from linnet.sim.places.world import HOST, PlacesWorld

LATE = "guest3"


def place(policy: Policy, seed: int) -> PlacesWorld:
    """A host, a co-host who was one before anybody came, and others; one is outside."""
    world = PlacesWorld(4, seed)
    world.found(policy)
    world.welcomes = True
    share(world, COHOST)
    for name in world.guests[:3]:
        world.enter(name)
    run(world, 5)
    return world


def admitted_beside_a_cut(world: PlacesWorld) -> Recount:
    """Somebody comes in at the host while the co-host opens the term that will count."""
    recount = Recount(world)
    recount.announce(HOST, "hello", set_to("_name", "tea"))
    run(world, 5)
    split(world, COHOST, "guest1")
    run(world, 10)
    recount.announce(COHOST, "there")
    world.enter(LATE)
    run(world, 10)
    assert world.status(LATE).role == "guest"
    return recount


def check_in(world: PlacesWorld, recount: Recount) -> None:
    """The guest is in, as everybody else is, and hears both who speak."""
    recount.announce(HOST, "by the host", set_to("_topic", "cake"))
    run(world, 10)
    recount.announce(COHOST, "by the co-host")
    run(world, 30)
    assert heard(world, LATE)[-2:] == ["by the host", "by the co-host"]
    recount.check(*everybody(world))
    statuses = {name: world.status(name) for name in everybody(world)}
    assert len({(each.term, each.fragment, each.guests) for each in statuses.values()}) == 1
    assert (statuses[LATE].role, statuses[LATE].missing) == ("guest", 0)
    for name in everybody(world):
        guests = world.obtain(name, ListGuests(world.place), GuestsAre)
        assert world.identities[LATE].author in [each.nym for each in guests.guests]
        assert not guests.waiting, "nobody is left at the door"


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("policy", [Policy.PUBLIC, Policy.CLOSED, Policy.PRIVATE])
def test_a_guest_who_was_admitted_before_a_cut_hears_what_is_said_behind_it(
    policy: Policy, seed: int
) -> None:
    world = place(policy, seed)
    recount = admitted_beside_a_cut(world)
    world.network.heal()
    run(world, 120)
    check_in(world, recount)


@pytest.mark.parametrize("policy", [Policy.PUBLIC, Policy.PRIVATE])
@pytest.mark.parametrize("before", [False, True])
def test_also_if_it_was_away_when_the_line_was_cut(policy: Policy, before: bool) -> None:
    world = place(policy, seed=4)
    recount = admitted_beside_a_cut(world)
    if before:
        world.crash(LATE)
    world.network.heal()
    run(world, 60)
    if not before:
        world.crash(LATE)
        run(world, 1)
    world.restart(LATE)
    run(world, 120)
    check_in(world, recount)


@pytest.mark.parametrize("after", [0.5, 1.6, 1.65, 1.7, 3.0])
def test_also_if_it_crashes_just_then(after: float) -> None:
    world = place(Policy.PUBLIC, seed=1)
    recount = admitted_beside_a_cut(world)
    world.network.heal()
    run(world, after)
    world.crash(LATE)
    run(world, 1)
    world.restart(LATE)
    run(world, 120)
    check_in(world, recount)


@pytest.mark.parametrize("policy", [Policy.CLOSED, Policy.PRIVATE])
def test_a_co_host_who_was_a_guest_first_is_read_by_all_when_they_meet_again(policy: Policy) -> None:
    world = PlacesWorld(4, seed=5)
    world.found(policy)
    world.welcomes = True
    for name in world.guests[:3]:
        world.enter(name)
    share(world, COHOST)
    recount = admitted_beside_a_cut(world)
    world.network.heal()
    run(world, 120)
    check_in(world, recount)
    for name in (HOST, COHOST, "guest1", "guest2"):
        assert "there" in heard(world, name), name
        assert not world.status(name).locked, name


def test_who_left_and_comes_back_after_terms_that_it_could_not_see_hears_again() -> None:
    world = shared_place(4, seed=6)
    says(world, HOST, "one")
    world.obtain(LATE, LeavePlace(world.place, True), Talked)
    run(world, 5)
    says(world, COHOST, "two")
    says(world, HOST, "three")
    says(world, COHOST, "four")
    run(world, 5)
    world.enter(LATE)
    run(world, 10)
    says(world, HOST, "five")
    run(world, 20)
    assert heard(world, LATE)[-1:] == ["five"]
    assert world.status(LATE).term == world.status(HOST).term


def test_who_was_put_out_while_it_was_away_hears_again_when_it_was_let_in_anew() -> None:
    world = shared_place(4, seed=7)
    says(world, HOST, "one")
    run(world, 5)
    world.crash(LATE)
    world.obtain(HOST, Eject(world.place, world.identities[LATE].author), Announced)
    says(world, COHOST, "two")
    says(world, HOST, "three")
    run(world, 5)
    world.restart(LATE)
    run(world, 30)
    says(world, COHOST, "four")
    run(world, 20)
    assert heard(world, LATE)[-1:] == ["four"]
    assert world.status(LATE).term == world.status(HOST).term


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
