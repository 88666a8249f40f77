"""The shared counter of the examples, simulated: what it promises, whatever is lost or restarted."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from examples.counter import COUNTER, AddToCounter, ExamineCounter, ExamineFates, OpenCounter, ReadCounter
from examples.counter.commands import Added, CounterIs, FatesAre, Opened
from examples.counter.counter import amount_of
from examples.counter.part import COMPARE_PERIOD

from linnet.core.effects import Deliver
from linnet.core.ids import EventId, PeerId
from linnet.delivery.commands import Consumed
from linnet.delivery.config import DeliveryConfig
from linnet.event.event import Event
from linnet.peer.config import PeerConfig
from linnet.peer.interface import Handed, Start
from linnet.sim.links import LinkModel, constant_latency
from linnet.sim.named_nodes import NamedNodes

TRACKER = "tracker"
NAME = "visitors"
READER = 1


class CounterWorld(NamedNodes):
    """A tracker, and nodes that share one counter."""

    hints = ("tls://sim:1",)
    patience = 60.0
    step = 0.25

    def __init__(self, count: int, seed: int, loss: float = 0.0) -> None:
        super().__init__(seed, LinkModel(constant_latency(20.0), loss=loss), None)
        self.all = [f"n{number}" for number in range(count)]
        self.added: list[tuple[str, int, Added]] = []
        """Who added how much, and what was answered."""
        self.events: dict[str, list[Event]] = {}
        """What readers were handed."""
        self.consumes = True
        self.add((TRACKER, *self.all))
        for name in (TRACKER, *self.all):
            self.ask(name, Start())

    def configured(self, name: str) -> PeerConfig:
        return PeerConfig(
            listens=self.hints,
            trackers=(self.contact(TRACKER),),
            is_tracker=name == TRACKER,
            delivery=DeliveryConfig(page_units=16),
            protocols=(COUNTER,),
        )

    def deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        events = [item for item in effect.items if isinstance(item, Event)]
        self.events.setdefault(self.names[peer], []).extend(events)
        if self.consumes and events:
            self.network.ask(peer, Consumed(effect.subscription, len(events)))

    def share(self, names: Iterable[str]) -> None:
        for name in names:
            self.obtain(name, OpenCounter(NAME), CounterIs)
        self.run(5.0)

    def count(self, name: str, amount: int) -> None:
        self.added.append((name, amount, self.obtain(name, AddToCounter(NAME, amount), Added)))

    def run(self, seconds: float) -> None:
        self.network.run(self.network.elapsed + seconds)

    def restart(self, name: str) -> None:
        self.network.restart(self.peer(name), self.machine(name))
        self.ask(name, Start())

    def status(self, name: str) -> CounterIs:
        return self.obtain(name, ExamineCounter(NAME), CounterIs)

    @property
    def total(self) -> int:
        return sum(amount for _, amount, _ in self.added)

    def assert_agreed(self, names: Iterable[str]) -> None:
        """Everywhere the same, to the last share; and that is what was added, each addition once."""
        seen = [self.status(name) for name in names]
        assert [each.value for each in seen] == [self.total] * len(seen)
        assert all(each == seen[0] for each in seen)
        assert sum(share.additions for share in seen[0].shares) == len(self.added)

    def assert_acknowledged(self, names: list[str]) -> None:
        """Each addition has a receipt of every other device."""
        for name, _, added in self.added:
            told = self.obtain(name, ExamineFates(NAME, added.number), FatesAre)
            arrived = {fate.receiver for fate in told.fates if fate.delivered_at is not None}
            assert arrived >= {self.peer(other) for other in names if other != name}


@pytest.mark.parametrize("seed", range(5))
def test_with_loss_it_is_equal_everywhere_and_every_addition_is_acknowledged(
    seed: int,
) -> None:
    world = CounterWorld(6, seed)
    world.share(world.all)
    world.network.lose(0.2)
    for number in range(48):
        world.count(f"n{number % 6}", number + 1)
    world.run(30.0)
    world.network.lose(0.0)
    world.run(60.0)
    world.assert_agreed(world.all)
    world.assert_acknowledged(world.all)


def test_an_addition_of_which_every_message_was_lost_comes_with_the_next_comparison() -> None:
    world = CounterWorld(2, 1)
    world.share(world.all)
    world.network.lose(1.0)
    world.count("n0", 1)
    world.run(1.0)
    world.network.lose(0.0)
    world.run(COMPARE_PERIOD + 1.0)
    world.assert_agreed(world.all)
    world.assert_acknowledged(world.all)


def test_a_late_joiner_catches_up_page_by_page() -> None:
    world = CounterWorld(3, 1)
    world.share(("n0", "n1"))
    for _ in range(150):
        world.count("n0", 1)
    world.count("n1", 7)
    world.obtain("n2", OpenCounter(NAME), CounterIs)
    world.run(COMPARE_PERIOD / 2)
    assert world.status("n2").value == 157
    world.assert_agreed(world.all)
    world.assert_acknowledged(world.all)


def test_a_node_that_crashes_goes_on_where_it_was() -> None:
    world = CounterWorld(4, 2)
    world.share(world.all)
    for name in world.all:
        world.count(name, 10)
    world.run(2.0)
    world.network.crash(world.peer("n1"))
    world.count("n0", 5)
    world.count("n2", 6)
    world.restart("n1")
    assert world.status("n1").value == 40  # from its own store, before it has a link
    world.run(30.0)
    assert world.status("n1").value == 51
    world.count("n1", 9)
    world.run(30.0)
    world.assert_agreed(world.all)
    world.assert_acknowledged(world.all)


@pytest.mark.parametrize("seed", range(3))
def test_those_who_add_while_apart_agree_after_healing(seed: int) -> None:
    world = CounterWorld(6, seed)
    world.share(world.all)
    here, there = world.all[:3], world.all[3:]
    groups = [[world.peer(name) for name in names] for names in ((TRACKER, *here), there)]
    world.network.partition(groups)
    for number in range(12):
        world.count(here[number % 3], 2)
        world.count(there[number % 3], 3)
    world.run(10.0)
    assert {world.status(name).value for name in here} == {24}
    assert world.status(there[0]).value < world.total
    world.network.heal()
    world.run(120.0)
    world.assert_agreed(world.all)
    world.assert_acknowledged(world.all)


def test_a_durable_reader_is_handed_every_addition_once_over_a_restart() -> None:
    world = CounterWorld(2, 3)
    world.share(world.all)
    assert not world.obtain("n1", ReadCounter(READER, NAME, "mine"), Opened).resumed
    for number in range(5):
        world.count("n0", number + 1)
    world.run(5.0)
    world.network.crash(world.peer("n1"))
    world.count("n0", 100)
    world.restart("n1")
    world.run(30.0)
    assert world.obtain("n1", ReadCounter(READER, NAME, "mine"), Opened).resumed
    world.run(5.0)
    assert [amount_of(event) for event in world.events["n1"]] == [1, 2, 3, 4, 5, 100]


def test_what_a_crash_interrupted_comes_again_and_nothing_else() -> None:
    world = CounterWorld(2, 3)
    world.share(world.all)
    world.consumes = False
    world.obtain("n1", ReadCounter(READER, NAME, "mine"), Opened)
    world.count("n0", 1)
    world.count("n0", 2)
    world.run(5.0)
    world.answered(world.ask("n1", Consumed(READER, 1)))
    world.network.crash(world.peer("n1"))
    world.restart("n1")
    world.obtain("n1", ReadCounter(READER, NAME, "mine"), Opened)
    world.run(5.0)
    assert [amount_of(event) for event in world.events["n1"]] == [1, 2, 2]


def test_a_reader_without_a_name_begins_with_what_is_there() -> None:
    world = CounterWorld(1, 3)
    world.share(world.all)
    world.count("n0", 4)
    assert not world.obtain("n0", ReadCounter(READER, NAME), Opened).resumed
    world.count("n0", 5)
    world.run(1.0)
    ids: list[EventId] = [event.id for event in world.events["n0"]]
    assert ids == [added.event for _, _, added in world.added]
