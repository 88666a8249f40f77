"""Keepers of places that several speak in: the co-host is kept as the host is, and nobody goes in circles."""

from __future__ import annotations

import pytest
from tests.places.test_keepers import KEEPER, KeptWorld, bodies

from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.places.commands import (
    Announce,
    Announced,
    EnterPlace,
    GuestsAre,
    HostPlace,
    ListGuests,
    PlaceIs,
)
from linnet.places.deed import Policy
from linnet.rooms.config import RelayConfig, RelayPolicy
from linnet.sim.places_world import HOST
from linnet.trace.columns import ColumnTrace

COHOST, GUEST, OTHER = "guest1", "guest2", "guest3"


def shared_and_kept(policy: Policy, seed: int, trace: ColumnTrace | None = None) -> KeptWorld:
    """A place with a co-host, and a keeper that allows the host alone."""
    world = KeptWorld(3, seed, RelayConfig(policy=RelayPolicy.ALLOW), trace=trace)
    world.found(policy)
    allow(world, HOST)
    people = (world.identities[COHOST].author,)
    world.obtain(HOST, HostPlace(world.place, None, people, (world.contact(KEEPER),)), PlaceIs)
    for name in (COHOST, GUEST, OTHER):
        world.enter(name)
    world.run(5)
    return world


def allow(world: KeptWorld, name: str) -> None:
    """The keeper allows this one alone, from its next start on, which is now."""
    world.relay = RelayConfig(policy=RelayPolicy.ALLOW, allow=(world.identities[name].author,))
    world.crash(KEEPER)
    world.run(1)
    world.restart(KEEPER)
    world.run(1)


def says(world: KeptWorld, name: str, body: bytes) -> None:
    world.obtain(name, Announce(world.place, "_message", (), body), Announced)
    world.run(5)


@pytest.mark.parametrize("policy", [Policy.PUBLIC, Policy.CLOSED])
@pytest.mark.parametrize("seed", [1, 2])
def test_what_the_co_host_says_is_kept_and_given_to_a_guest_who_comes_back(policy: Policy, seed: int) -> None:
    trace = ColumnTrace()
    world = shared_and_kept(policy, seed, trace)
    says(world, HOST, b"one")
    world.crash(GUEST)
    world.crash(HOST)
    says(world, COHOST, b"two")
    world.run(60)
    assert world.places(KEEPER)[0].term == world.status(COHOST).term == 2
    world.crash(COHOST)
    world.crash(OTHER)
    world.restart(GUEST)
    world.run(60)
    assert bodies(world, GUEST)[-2:] == [b"one", b"two"]
    world.restart(OTHER)
    world.restart(COHOST)
    world.restart(HOST)
    world.run(120)
    says(world, HOST, b"three")
    assert bodies(world, GUEST)[-3:] == [b"one", b"two", b"three"]
    stale = [row for row in trace.rows() if row.note is not None and "it knows term" in row.note]
    assert len(stale) < 10, "nobody goes in circles"


def test_a_keeper_that_missed_a_term_learns_it_from_a_guest_and_lets_it_in() -> None:
    trace = ColumnTrace()
    world = shared_and_kept(Policy.PUBLIC, 3, trace)
    says(world, HOST, b"one")
    world.crash(KEEPER)
    world.crash(HOST)
    says(world, COHOST, b"two")
    world.crash(COHOST)
    world.crash(GUEST)
    world.restart(KEEPER)
    world.run(120)
    assert world.peer(KEEPER) in world.status(OTHER).upstreams
    (kept,) = world.places(KEEPER)
    assert (kept.term, kept.missing) == (2, 0)
    stale = [row for row in trace.rows() if row.note is not None and "it knows term" in row.note]
    assert len(stale) < 10
    world.crash(OTHER)
    world.restart(GUEST)
    world.run(60)
    assert bodies(world, GUEST)[-2:] == [b"one", b"two"]


@pytest.mark.parametrize("policy", [Policy.PUBLIC, Policy.ANONYMOUS])
def test_a_keeper_is_no_guest(policy: Policy) -> None:
    world = shared_and_kept(policy, 4)
    for number in range(4):
        says(world, HOST if number % 2 else COHOST, b"%d" % number)
    world.crash(KEEPER)
    says(world, COHOST, b"five")
    world.restart(KEEPER)
    world.run(120)
    (kept,) = world.places(KEEPER)
    assert kept.role == "keeper"
    assert kept.fragment == world.status(COHOST).fragment
    guests = world.obtain(COHOST, ListGuests(world.place), GuestsAre)
    assert world.identities[KEEPER].author not in [each.nym for each in guests.guests]


@pytest.mark.parametrize("policy", [Policy.PUBLIC, Policy.ANONYMOUS])
def test_who_is_named_as_a_keeper_and_knocks_is_not_let_in(policy: Policy) -> None:
    """It allows nobody, so it keeps nothing, and its own application asks to come in instead."""
    world = KeptWorld(1, 6, RelayConfig(policy=RelayPolicy.ALLOW))
    world.found(policy)
    world.obtain(HOST, HostPlace(world.place, None, (), (world.contact(KEEPER),)), PlaceIs)
    says(world, HOST, b"one")
    entry = EnterPlace(world.place, (world.contact(HOST),))
    turned = world.answered(world.ask(KEEPER, entry))
    assert isinstance(turned, Declined)
    assert turned.reason is Reason.NOT_ALLOWED
    guests = world.obtain(HOST, ListGuests(world.place), GuestsAre)
    assert world.identities[KEEPER].author not in [each.nym for each in guests.guests]


def test_somebody_whom_the_relay_does_not_allow_cannot_use_the_name_of_one_whom_it_does() -> None:
    trace = ColumnTrace()
    world = KeptWorld(2, 5, RelayConfig(policy=RelayPolicy.ALLOW), trace=trace)
    # The host is not allowed; that the deed names somebody as co-host who is makes no difference.
    world.found(Policy.PUBLIC)
    allow(world, GUEST)
    people = (world.identities[GUEST].author,)
    world.obtain(HOST, HostPlace(world.place, None, people, (world.contact(KEEPER),)), PlaceIs)
    says(world, HOST, b"one")
    assert world.places(KEEPER) == ()
    said = [
        row.note for row in trace.rows() if row.node == world.peer(HOST) and row.reason == Reason.NOT_ALLOWED
    ]
    assert said == ["a keeper says no: not_allowed"]
