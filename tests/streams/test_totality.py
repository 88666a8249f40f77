"""Every event to everyone, whatever happens on the way: over many seeds."""

from __future__ import annotations

import pytest
from tests.conftest import SOAK
from tests.streams.tale import DURABLE, PUBLISHERS, Tale
from tests.streams.village import Village

from linnet.delivery.config import DeliveryConfig

SEEDS = range(200 if SOAK else 3)
# What was said in a part that fell off is with its publisher alone; who waits for it must wait
# until that one is back for good.
PATIENT = DeliveryConfig(gap_tries=30)


@pytest.mark.parametrize("seed", SEEDS)
def test_with_reordering_between_links(seed: int) -> None:
    tale = Tale(seed, jitter=0.2)
    tale.talk(10, each=0.05)
    tale.end()
    tale.check()


@pytest.mark.parametrize("loss", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("seed", SEEDS)
def test_with_single_messages_lost(seed: int, loss: float) -> None:
    tale = Tale(seed, loss=loss)
    tale.talk(15)
    tale.end()
    tale.check()


@pytest.mark.parametrize("name", [None, "app"])
def test_with_everything_lost_between_two_for_a_while(name: str | None) -> None:
    village = Village(1, peers=2, storage=0)
    reader = village.subscribe("p1", name=name)
    village.run(20.0)
    village.publish("p0", b"one", wait=30.0)
    village.network.lose(1.0)
    village.publish("p0", b"two", wait=7.0)
    village.network.lose(0.0)
    village.run(60.0)
    assert village.bodies("p1", reader) == [b"one", b"two"]


@pytest.mark.parametrize("seed", SEEDS)
def test_when_subscribers_crash_and_return(seed: int) -> None:
    tale = Tale(seed, commit_delay=0.05)
    tale.churn(DURABLE, 4)
    tale.end()
    tale.check()


@pytest.mark.parametrize("seed", SEEDS)
def test_when_publishers_crash_and_return(seed: int) -> None:
    tale = Tale(seed, commit_delay=0.05)
    tale.churn(PUBLISHERS, 5, away=3.0)
    tale.end()
    tale.check()


@pytest.mark.parametrize("seed", SEEDS)
def test_when_storage_nodes_crash_and_return(seed: int) -> None:
    tale = Tale(seed, commit_delay=0.05)
    tale.churn(("s0", "s1"), 4)
    tale.end()
    tale.check()


@pytest.mark.parametrize("seed", SEEDS)
def test_when_trackers_die_and_return(seed: int) -> None:
    tale = Tale(seed)
    tale.churn(("t0", "t1"), 3, away=15.0)
    tale.end()
    tale.check()


@pytest.mark.parametrize("seed", SEEDS)
def test_when_the_network_falls_apart_and_heals(seed: int) -> None:
    tale = Tale(seed, delivery=PATIENT)
    tale.talk(3)
    tale.partition(10)
    tale.partition(15)
    tale.end()
    tale.check()


@pytest.mark.parametrize("seed", SEEDS)
def test_when_everything_happens(seed: int) -> None:
    tale = Tale(seed, loss=0.02, commit_delay=0.05, delivery=PATIENT)
    tale.churn((*DURABLE, *PUBLISHERS, "s0", "t0"), 4)
    tale.partition(10)
    tale.churn((*DURABLE, *PUBLISHERS, "s1", "t1"), 3)
    tale.end()
    tale.check()
