"""Keys that a guest lacks: it asks the voice, is told, and meanwhile nothing is a silent gap."""

from __future__ import annotations

from linnet.core.reasons import Reason
from linnet.places.commands import Announce, Announced, EnterPlace, HostPlace, PlaceIs
from linnet.places.deed import Policy
from linnet.places.sealed.epoch_keys import Ring
from linnet.sim.places_world import HOST, PlacesWorld


def announced(world: PlacesWorld, body: bytes) -> int:
    return world.obtain(HOST, Announce(world.place, "_message", (), body), Announced).message


def forget_keys(world: PlacesWorld, name: str) -> None:
    """A store that lost what it had of keys, as a backup without secrets has."""
    cells = world.stores[name].cells
    space = f"place epoch {world.place.hex()}"
    for key in [key for key, _ in cells.scan(space)]:
        cells.delete(space, key)
    cells.delete("place prekeys", world.place)
    world.stores[name].commit(lambda: None)


def entered(seed: int) -> PlacesWorld:
    world = PlacesWorld(3, seed)
    world.welcomes = True
    world.found(Policy.PRIVATE)
    for name in world.guests:
        world.enter(name)
    return world


def test_a_guest_that_lost_its_keys_is_told_them_again_and_says_what_it_lacks_meanwhile() -> None:
    world = entered(1)
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
    world = PlacesWorld(2, 2)
    world.welcomes = True
    world.found(Policy.PUBLIC)
    for name in world.guests:
        world.enter(name)
    open_ = announced(world, b"open")
    world.obtain(HOST, HostPlace(world.place, policy=Policy.PRIVATE), PlaceIs)
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
