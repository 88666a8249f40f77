"""A host that was away, co-hosts who spoke meanwhile, and the one line that everybody has in the end."""

from __future__ import annotations

import pytest
from tests.places.sharing import COHOST, assert_one_line, heard, run, says, share, shared_place, split

from linnet.delivery.commands import Declined
from linnet.places.commands import Announce
from linnet.places.deed import Policy
from linnet.sim.places_world import HOST, PlacesWorld


@pytest.mark.parametrize("seed", range(3))
def test_a_host_that_was_away_catches_up_and_speaks_again(seed: int) -> None:
    world = shared_place(4, seed)
    says(world, HOST, "by the host")
    run(world, 5)
    world.crash(HOST)
    run(world, 5)
    says(world, COHOST, "by the co-host")
    run(world, 5)
    world.restart(HOST)
    run(world, 60)
    assert heard(world, HOST) == ["by the host", "by the co-host"]
    assert world.status(HOST).voice == world.identities[COHOST].peer, (
        "it listens until it has something to say"
    )
    says(world, HOST, "by the host again")
    run(world, 60)
    assert_one_line(world, ["by the host", "by the co-host", "by the host again"])
    assert world.status(COHOST).voice == world.identities[HOST].peer
    assert world.status(COHOST).term == 3


def test_guests_who_stayed_with_the_old_voice_move_on_by_themselves() -> None:
    world = shared_place(5, seed=4)
    says(world, HOST, "before")
    run(world, 5)
    split(world, COHOST, "guest1", "guest2")
    run(world, 10)
    says(world, COHOST, "there")
    run(world, 60)
    world.network.heal()
    run(world, 400)
    assert_one_line(world, ["before", "there"])
    assert world.status("guest4").term == 2


def test_who_comes_later_can_check_what_a_former_co_host_said() -> None:
    world = PlacesWorld(4, seed=11)
    world.found(Policy.CLOSED)
    world.welcomes = True
    for name in ("guest0", "guest1"):
        world.enter(name)
    share(world, COHOST)
    says(world, HOST, "by the host")
    says(world, COHOST, "by the co-host")
    run(world, 10)
    share(world)
    run(world, 10)
    assert [each.term for each in world.status(HOST).deed.past] == [2]
    assert world.status(HOST).term == 3, "the host goes on: nobody else may"
    refused = world.answered(world.ask(COHOST, Announce(world.place, "_message", body=b"still me")))
    assert isinstance(refused, Declined)
    world.enter("guest3")
    run(world, 30)
    world.watch("guest3")
    run(world, 10)
    assert heard(world, "guest3") == ["by the host", "by the co-host"]
