"""Clocks that jump by hours and years and come back: nobody is silenced for good."""

from __future__ import annotations

import pytest
from tests.streams.village import Eavesdropped, Village

from linnet.core.hello import Hello
from linnet.identity.cards import CARD_DAYS, Card, is_good, issue_card
from linnet.identity.keys import SigningKey
from linnet.machine.commands import Declined
from linnet.peer.config import Identity
from linnet.peer.interface import Effect, Input
from linnet.sim.seeded_random import SeededEntropy
from linnet.streams.commands import Published

HOUR, DAY, YEAR = 3600.0, 86_400.0, 365 * 86_400.0


class Wrong(Eavesdropped):
    """A node whose clock is off by so many seconds."""

    def __init__(self, village: Village, name: str, off: float) -> None:
        super().__init__(village, name)
        self._off = off

    @property
    def hello(self) -> Hello:
        return self.machine.hello

    def handle(self, event: Input, now: float) -> list[Effect]:
        return super().handle(event, now + self._off)


def person_of(village: Village, name: str) -> SigningKey:
    """The key that `seeded_identity` drew first."""
    return SigningKey.generate(SeededEntropy(village.seed, f"identity/{name}"))


def start(village: Village, name: str, off: float) -> None:
    """Restart a node with its clock off by so much; like a home, it has its card renewed if need be."""
    village.crash(name)
    now, old = village.network.now + off, village.identity[name]
    if not is_good(old.card, now, leeway=0) or old.card.not_after - now < 60 * DAY:
        village.identity[name] = Identity(old.device, renewed(village, name, old.card, now))
    village.begin(name, Wrong(village, name, off))
    village.run(5.0)


def renewed(village: Village, name: str, card: Card, now: float) -> Card:
    begin = int(now - HOUR)
    return issue_card(
        person_of(village, name), card.device_key, begin, int(now + CARD_DAYS * DAY), card.label
    )


def is_everywhere(village: Village, body: bytes, readers: dict[str, int]) -> bool:
    return all(body in village.bodies(name, number) for name, number in readers.items())


@pytest.mark.parametrize("off", [5 * HOUR, -5 * HOUR, 2 * YEAR, 3 * YEAR, -3 * YEAR])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_device_whose_clock_was_wrong_is_heard_again(seed: int, off: float) -> None:
    village = Village(seed, peers=4)
    readers = {name: village.subscribe(name) for name in ("p1", "p2")}
    village.run(5.0)
    village.publish("p0", b"before", wait=5.0)
    assert is_everywhere(village, b"before", readers)
    start(village, "p0", off)
    said = village.publish("p0", b"meanwhile", wait=5.0)
    assert isinstance(said, Published | Declined)
    start(village, "p0", 0.0)
    assert isinstance(village.publish("p0", b"after", wait=30.0), Published)
    assert is_everywhere(village, b"after", readers), village.reasons("s0")[-3:]
    assert is_everywhere(village, b"meanwhile", readers) or isinstance(said, Declined)
    # Also for whoever comes later, after the storage node has forgotten what it only had in memory.
    village.crash("s0")
    village.restart("s0")
    village.run(5.0)
    late = village.subscribe("p3", since=0.0, wait=30.0)
    assert village.bodies("p3", late)[-1] == b"after"
    village.publish("p0", b"and on", wait=10.0)
    assert is_everywhere(village, b"and on", {**readers, "p3": late})


@pytest.mark.parametrize("off", [5 * HOUR, 3 * YEAR, -3 * YEAR])
def test_a_storage_node_whose_clock_was_wrong_takes_events_again(off: float) -> None:
    village = Village(3, peers=3)
    readers = {name: village.subscribe(name) for name in ("p1",)}
    village.run(5.0)
    village.publish("p0", b"before", wait=5.0)
    start(village, "s0", off)
    village.publish("p0", b"meanwhile", wait=5.0)
    start(village, "s0", 0.0)
    village.publish("p0", b"after", wait=30.0)
    assert is_everywhere(village, b"after", readers)
    late = village.subscribe("p2", since=0.0, wait=30.0)
    assert village.bodies("p2", late) == [b"before", b"meanwhile", b"after"]
