"""Readers among faults of every kind, drawn by chance: what was said after each came, it has or was told."""

from __future__ import annotations

import pytest
from tests.conftest import SOAK
from tests.streams.test_late_links import Course
from tests.streams.village import STREAM

from linnet.event.event import Event
from linnet.streams.commands import Subscribe

SEEDS = 200 if SOAK else 6
SPEAKERS = ("p0", "p1")
READERS = ("p2", "p3", "p4", "p5")
FAULTS = ("tracker", "storage", "restart", "partition", "heal", "wait")


class World(Course):
    """A village in which things break, and readers come at any moment."""

    def __init__(self, seed: int) -> None:
        self.storage = seed % 3
        super().__init__(seed, storage=self.storage, peers=6)
        self.down: set[str] = set()
        self.durable: dict[tuple[str, int], str] = {}

    def step(self) -> None:
        luck, village = self.luck, self.village
        match luck.choice(("say",) * 6 + ("live", "durable") + FAULTS):
            case "say":
                self.say(luck.choice(SPEAKERS), b"%d" % len(self.said), luck.choice((0.01, 0.3)))
            case "live" | "durable" as sort:
                self.come(sort)
            case "tracker":
                self.toggle("t0")
            case "storage" if self.storage:
                self.toggle(f"s{luck.randrange(self.storage)}")
            case "restart":
                self.bounce(luck.choice(SPEAKERS + READERS))
            case "partition":
                group = [village.peer(name) for name in village.names if luck.random() < 0.4]
                village.network.partition([group], silent=luck.random() < 0.3)
            case "heal":
                village.network.heal()
            case _:
                village.run(luck.choice((1.0, 10.0, 70.0)))
        village.run(luck.choice((0.0, 0.1, 1.0, 5.0)))

    def come(self, sort: str) -> None:
        """Nothing is said within the time of a message: that is neither before nor after."""
        self.village.run(0.3)
        name = self.luck.choice(READERS)
        if sort == "live":
            self.read(name)
        else:
            called = f"number {len(self.durable)}"
            self.durable[name, self.read(name, name=called)] = called
        self.village.run(0.3)

    def toggle(self, name: str) -> None:
        if name in self.down:
            self.village.restart(name)
        else:
            self.village.crash(name)
        self.down ^= {name}

    def bounce(self, name: str) -> None:
        """Live readers are gone with their node; durable ones come back."""
        self.village.crash(name)
        self.village.run(self.luck.choice((0.0, 1.0, 20.0)))
        self.village.restart(name)
        for key in [key for key in self.readers if key[0] == name]:
            if key in self.durable:
                again = Subscribe(key[1], STREAM, None, self.durable[key])
                self.village.network.ask(self.village.peer(name), again)
            else:
                del self.readers[key]

    def end(self) -> None:
        self.village.network.heal()
        for name in sorted(self.down):
            self.village.restart(name)
        self.village.run(30)
        for name in SPEAKERS:
            self.say(name, b"last of " + name.encode(), 5.0)
        self.village.run(250)

    def forget_old(self) -> None:
        """What was cut off and came late is new to whoever is there then: nobody can tell (0027)."""
        for key, since in self.readers.items():
            old = {body for _, _, body in self.said[:since]}
            items = self.village.items[key]
            self.village.items[key] = [
                item for item in items if not (isinstance(item, Event) and item.body in old)
            ]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_lost_in_silence_doubled_or_out_of_order_whatever_breaks(seed: int) -> None:
    world = World(seed)
    world.village.run(2)
    world.come("durable")
    for _ in range(40):
        world.step()
    world.end()
    world.forget_old()
    world.judge()
    due = sum(len(world.said[since:]) for since in world.readers.values())
    had = sum(len(world.village.bodies(*key)) for key in world.readers)
    # Most of it is had, not told: what was said before its chain was first heard may have lost its turn.
    assert had >= 0.8 * due > 0
