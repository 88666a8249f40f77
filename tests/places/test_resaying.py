"""What was said in a term that was cut is said again: once, in the same order, also after a crash."""

from __future__ import annotations

import pytest
from tests.places.sharing import COHOST, assert_one_line, heard, run, says, shared_place, split

from linnet.places.channel.psyc import Modifier
from linnet.places.commands import Announce, Announced
from linnet.places.items import AGAIN, Said
from linnet.sim.places_world import HOST


def test_what_was_said_on_both_sides_of_a_split_is_there_once_in_the_end() -> None:
    world = shared_place(5, seed=5)
    says(world, HOST, "before")
    run(world, 5)
    split(world, COHOST, "guest1", "guest2")
    run(world, 10)
    for text in ("here 1", "here 2"):
        says(world, HOST, text)
    for text in ("there 1", "there 2"):
        says(world, COHOST, text)
    run(world, 30)
    assert heard(world, "guest4") == ["before", "here 1", "here 2"]
    assert heard(world, "guest2") == ["before", "there 1", "there 2"]
    world.network.heal()
    run(world, 400)
    assert_one_line(world, ["before", "there 1", "there 2", "here 1", "here 2"])
    (taken,) = world.taken_back["guest4"]
    assert len(taken.messages) >= 2
    assert "guest2" not in world.taken_back


@pytest.mark.parametrize("after", [0.05, 0.3, 1.0, 3.5])
def test_it_is_said_again_once_also_if_its_author_crashes_meanwhile(after: float) -> None:
    world = shared_place(3, seed=8)
    split(world, COHOST, "guest1")
    run(world, 10)
    says(world, HOST, "here 1")
    says(world, HOST, "here 2")
    says(world, COHOST, "there")
    run(world, 30)
    world.network.heal()
    while world.status(HOST).term == 1:
        run(world, 0.05)
    run(world, after)
    world.crash(HOST)
    run(world, 1)
    world.restart(HOST)
    run(world, 300)
    assert_one_line(world, ["there", "here 1", "here 2"])


def test_whoever_watches_can_tell_what_is_said_again() -> None:
    world = shared_place(2, seed=10)
    split(world, COHOST)
    run(world, 10)
    first = world.obtain(HOST, Announce(world.place, "_message", (), b"here"), Announced)
    says(world, COHOST, "there")
    run(world, 30)
    world.network.heal()
    run(world, 200)
    again = [each for each in world.heads["guest1"] if any(mod.name == AGAIN for mod in each.modifiers)]
    assert first.event is not None
    assert [each.modifiers for each in again] == [(Modifier(":", AGAIN, first.event.hex().encode()),)]
    assert isinstance(again[0], Said)
