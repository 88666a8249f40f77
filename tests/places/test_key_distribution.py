"""Keys that somebody lacks: a guest asks the voice, the voice who may speak; nothing is a silent gap."""

from __future__ import annotations

import pytest
from tests.places.sharing import COHOST, announced, entered_place, heard, run, says, share, shared_place

from linnet.core.reasons import Reason
from linnet.places.commands import Announce, Announced, ChangePlace, Entered, EnterPlace, PlaceIs
from linnet.places.deed import Policy
from linnet.places.sealed.epoch_keys import Ring
from linnet.sim.places.world import HOST, PlacesWorld


def forget_keys(world: PlacesWorld, name: str) -> None:
    """A store that lost what it had of keys, as a backup without secrets has."""
    cells = world.stores[name].cells
    space = f"place epoch {world.place.hex()}"
    for key in [key for key, _ in cells.scan(space)]:
        cells.delete(space, key)
    cells.delete("place prekeys", world.place)
    world.stores[name].commit(lambda: None)


def test_a_guest_that_lost_its_keys_is_told_them_again_and_says_what_it_lacks_meanwhile() -> None:
    world = entered_place(3, 1, Policy.PRIVATE)
    before = announced(world, b"before")
    world.network.run(world.network.elapsed + 3)
    world.crash("guest1")
    forget_keys(world, "guest1")
    world.said["guest1"].clear()
    world.crash(HOST)
    world.restart("guest1")
    world.network.run(world.network.elapsed + 30)
    lost = {each.first: each.reason for each in world.lost["guest1"]}
    assert lost[before] is Reason.KEY_MISSING
    assert before not in world.said["guest1"]
    assert world.status("guest1").locked > 0
    world.restart(HOST)
    world.network.run(world.network.elapsed + 120)
    assert world.said["guest1"][before] == b"before"
    after = announced(world, b"after")
    world.network.run(world.network.elapsed + 5)
    assert world.said["guest1"][after] == b"after"
    assert world.status("guest1").locked == 0


def test_a_place_that_becomes_private_tells_its_guests_the_keys() -> None:
    world = entered_place(2, 2)
    open_ = announced(world, b"open")
    world.obtain(HOST, ChangePlace(world.place, policy=Policy.PRIVATE), PlaceIs)
    world.network.run(world.network.elapsed + 3)
    closed = announced(world, b"closed")
    world.network.run(world.network.elapsed + 60)
    for name in world.guests:
        assert world.said[name][open_] == b"open"
        assert world.said[name][closed] == b"closed"


def test_a_stranger_who_waits_at_the_door_is_told_no_key() -> None:
    world = PlacesWorld(2, 3)
    world.welcomes = True
    world.found(Policy.PRIVATE)
    world.enter("guest0")
    world.welcomes = False
    world.ask("guest1", EnterPlace(world.place, (world.contact(HOST),), patience=20.0))
    said = announced(world, b"for guests")
    world.network.run(world.network.elapsed + 30)
    assert world.said["guest0"][said] == b"for guests"
    assert len(Ring(world.place, world.stores["guest0"].cells)) == 1
    assert len(Ring(world.place, world.stores["guest1"].cells)) == 0


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
