"""Clocks that are wrong for a while: whoever waited is not made to wait for the difference."""

from __future__ import annotations

import pytest
from tests.places.sharing import heard, run, says, shared_place, split

from linnet.core.hello import Hello
from linnet.peer.interface import Effect, Input, NodeMachine
from linnet.sim.places.world import HOST, PlacesWorld

HOURS = 5 * 3600.0


class Off:
    """A machine whose clock may be wrong."""

    def __init__(self, machine: NodeMachine) -> None:
        self._machine = machine
        self.ahead = 0.0

    @property
    def hello(self) -> Hello:
        return self._machine.hello

    def handle(self, event: Input, now: float) -> list[Effect]:
        return self._machine.handle(event, now + self.ahead)


class WrongWorld(PlacesWorld):
    """Every clock may be wrong."""

    clocks: dict[str, Off]

    def machine(self, name: str) -> NodeMachine:
        off = Off(super().machine(name))
        vars(self).setdefault("clocks", {})[name] = off
        return off


@pytest.mark.parametrize("seed", [1, 2])
def test_a_guest_whose_clock_was_hours_ahead_comes_in_again_when_it_is_right(seed: int) -> None:
    world = shared_place(2, seed, cohosts=0, world=WrongWorld)
    assert isinstance(world, WrongWorld)
    guest = world.guests[1]
    says(world, HOST, "before")
    run(world, 30)
    world.clocks[guest].ahead = HOURS
    split(world, guest)  # it finds nobody, and leaves each alone for a while
    run(world, 80)
    world.clocks[guest].ahead = 0.0
    world.network.heal()
    run(world, 60)
    says(world, HOST, "behind")
    run(world, 20)
    assert heard(world, guest)[-1] == "behind"
