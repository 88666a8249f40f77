"""Hosts who are away: those who wait for them dial now and then, and are there when they are back."""

from __future__ import annotations

import pytest
from tests.places.recounting import objects
from tests.places.sharing import COHOST, heard, run, says, shared_place

from linnet.core.effects import AfterCommit, Dial
from linnet.core.ids import PeerId
from linnet.machine.commands import Declined
from linnet.peer.interface import Effect, Input, NodeMachine
from linnet.places.commands import EnterPlace, GuestsAre, ListGuests
from linnet.sim.places.world import HOST, PlacesWorld

MINUTES = 10
MOST = 10
"""Dials of one dead address in a minute."""


class Counting:
    """A machine, and when it dialled whom."""

    def __init__(self, machine: NodeMachine) -> None:
        self._machine = machine
        self.hello = machine.hello
        self.dials: list[tuple[float, PeerId]] = []

    def handle(self, event: Input, now: float) -> list[Effect]:
        effects = self._machine.handle(event, now)
        for effect in effects:
            done = effect.effects if isinstance(effect, AfterCommit) else (effect,)
            self.dials += [(now, each.peer) for each in done if isinstance(each, Dial)]
        return effects


class CountedWorld(PlacesWorld):
    """Every machine is counted."""

    counted: dict[str, Counting]

    def machine(self, name: str) -> NodeMachine:
        counted = Counting(super().machine(name))
        vars(self).setdefault("counted", {})[name] = counted
        return counted

    def worst(self, name: str, whom: str, since: float) -> int:
        """Most dials of one by another within any minute."""
        peer = self.peer(whom)
        times = [at for at, dialled in self.counted[name].dials if dialled == peer and at >= since]
        return max((sum(at <= each < at + 60.0 for each in times) for at in times), default=0)


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_host_who_is_away_is_dialled_a_few_times_a_minute_and_met_again_when_it_is_back(
    seed: int, silent: bool
) -> None:
    world = shared_place(3, seed, entered=2, world=CountedWorld)
    assert isinstance(world, CountedWorld)
    stranger = world.guests[2]
    says(world, HOST, "one")
    run(world, 60)
    world.network.crash(world.peer(HOST), silent=silent)
    since = world.network.now
    turned = world.answered(world.ask(stranger, EnterPlace(world.place, (world.contact(HOST),))))
    assert isinstance(turned, Declined)
    run(world, 60.0 * MINUTES)
    for name in world.guests:
        assert world.worst(name, HOST, since) <= MOST, name
    tried = [at for at, peer in world.counted[stranger].dials if peer == world.peer(HOST) and at > since + 60]
    assert not tried, "whose patience is over wants nothing any more"
    back = world.network.elapsed
    world.restart(HOST)
    run(world, 60)
    says(world, HOST, "two")
    run(world, 10)
    assert world.network.elapsed - back < 80
    for name in (COHOST, "guest1"):
        assert heard(world, name) == ["one", "two"], name


def test_a_guest_alone_with_its_host_finds_it_again() -> None:
    world = shared_place(1, seed=3, cohosts=0, world=CountedWorld)
    assert isinstance(world, CountedWorld)
    says(world, HOST, "one")
    run(world, 60)
    world.crash(HOST)
    since = world.network.now
    run(world, 60.0 * MINUTES)
    assert 0 < world.worst("guest0", HOST, since) <= MOST
    world.restart(HOST)
    run(world, 60)
    says(world, HOST, "two")
    run(world, 10)
    assert heard(world, "guest0") == ["one", "two"]


def test_a_host_who_is_back_at_once_is_met_at_once() -> None:
    world = shared_place(1, seed=4, cohosts=0)
    says(world, HOST, "one")
    run(world, 60)
    world.crash(HOST)
    run(world, 1)
    world.restart(HOST)
    run(world, 10)
    says(world, HOST, "two")
    run(world, 2)
    assert heard(world, "guest0") == ["one", "two"]


def test_while_the_host_is_away_guests_are_sent_what_they_lack_and_strangers_are_not_let_in() -> None:
    world = shared_place(3, seed=5, cohosts=0, entered=2)
    stranger = world.guests[2]
    says(world, HOST, "one")
    run(world, 5)
    world.crash("guest1")
    says(world, HOST, "two")
    run(world, 5)
    world.crash(HOST)
    run(world, 1)
    world.restart("guest1")
    run(world, 60)
    assert not world.is_online(HOST)
    assert heard(world, "guest1") == ["one", "two"]
    assert objects(world, "guest1") == {"_last": b"two"}
    assert world.status("guest1").upstreams == (world.peer("guest0"),)
    contacts = (world.contact("guest0"), world.contact("guest1"))
    turned = world.answered(world.ask(stranger, EnterPlace(world.place, contacts)))
    assert isinstance(turned, Declined)
    run(world, 60)
    assert not world.stores[stranger].log.kept(world.place).units, "it was given nothing"
    for name in ("guest0", "guest1"):
        guests = world.obtain(name, ListGuests(world.place), GuestsAre).guests
        assert world.identities[stranger].author not in [each.nym for each in guests]
        assert world.peer(stranger) not in world.status(name).downstreams
