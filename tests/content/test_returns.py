"""Nodes that crash and come back without their memory, no more at once than keep the filters of one."""

from __future__ import annotations

import os
from random import Random

import pytest

from linnet.content.commands import Outcome
from linnet.content.config import ContentConfig
from linnet.content.predicate import read_attributes, read_predicate
from linnet.sim.content.world import ContentWorld

SOAK = bool(os.environ.get("LINNET_SOAK"))
SEEDS = range(1, 201 if SOAK else 5)
NODES, STEPS, BACKUPS = 16, 120, 2
CONFIG = ContentConfig(
    backups=BACKUPS, resend=0.5, refresh=20.0, lately=300.0, avoided=3.0, confirmed=10.0, tries=5
)
WANTED = ("stock", "stock/price[50,)", "rain[5,)/weather", "wind(10,)/weather")
KEPT = "kept"
SETTLING = 10
"""Steps after its return for which somebody still counts as away: its filters have to be kept again."""


class Course:
    """Events all the time; now and then somebody crashes and comes back."""

    def __init__(self, seed: int) -> None:
        self.luck = Random(f"returns {seed}")
        self.world = ContentWorld(NODES, seed, CONFIG)
        self.wants = {name: WANTED[at % len(WANTED)] for at, name in enumerate(self.world.names)}
        self.away: dict[str, int] = {}
        """Who is away or just back, and for how many more steps."""
        self.said: list[tuple[int, str]] = []

    def run(self) -> None:
        for name, predicate in self.wants.items():
            self.world.keep(name, predicate, KEPT)
        self.world.run(10.0)
        for _ in range(STEPS):
            self.step()
            self.world.run(0.5)
        for name in [*self.away]:
            self.back(name)
        self.world.run(200.0)

    def step(self) -> None:
        up = [name for name in self.world.names if self.world.network.is_up(self.world.identities[name].peer)]
        text = self.luck.choice(
            (f"stock/price={self.luck.randint(0, 99)}", f"rain={self.luck.randint(0, 9)}/weather/wind=11")
        )
        said = self.world.publish(self.luck.choice(up), text, b"", confirm=3600.0)
        self.said.append((said, text))
        for name in [*self.away]:
            self.away[name] -= 1
            if self.away[name] == SETTLING:
                self.back(name)
            elif not self.away[name]:
                del self.away[name]
        if len(self.away) < BACKUPS and self.luck.random() < 0.3:
            name = self.luck.choice([name for name in up if name not in self.away])
            self.world.crash(name, silent=self.luck.random() < 0.2)
            self.away[name] = SETTLING + self.luck.randint(1, 20)

    def back(self, name: str) -> None:
        if not self.world.network.is_up(self.world.identities[name].peer):
            self.world.come_back(name)
            self.world.keep(name, self.wants[name], KEPT)

    def missing(self) -> list[str]:
        """Of what publishers know what became of."""
        found: list[str] = []
        for request, text in self.said:
            outcome = self.world.network.answers.get(request)
            if not isinstance(outcome, Outcome):
                continue
            event = read_attributes(text)
            for name, predicate in self.wants.items():
                if read_predicate(predicate).covers(event) and outcome.event not in self.world.handed(name):
                    found.append(f"{name} misses {text} {outcome.event.hex()[:8]}: {outcome.fates}")
        return found


@pytest.mark.parametrize("seed", SEEDS)
def test_who_was_away_has_everything_in_the_end(seed: int) -> None:
    course = Course(seed)
    course.run()
    answered = [
        each for each, _ in course.said if isinstance(course.world.network.answers.get(each), Outcome)
    ]
    assert len(answered) > STEPS / 2
    assert course.missing() == []
