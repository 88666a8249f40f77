"""Readers that find others only after they subscribed: they get what was said meanwhile, or are told."""

from __future__ import annotations

from random import Random

import pytest
from tests.conftest import SOAK
from tests.streams.village import STREAM, Village

from linnet.core.reasons import Reason
from linnet.event.event import Event
from linnet.sim.links import LinkModel, constant_latency
from linnet.streams.commands import Published, Subscribe

SEEDS = 200 if SOAK else 12


class Course:
    """A village in which it is noted what was said, in order, and when each reader subscribed."""

    def __init__(self, seed: int, *, storage: int, peers: int = 5) -> None:
        self.luck = Random(f"course {seed}")
        latency = constant_latency(self.luck.choice((1.0, 10.0, 80.0)))
        names = ["t0", *(f"s{n}" for n in range(storage)), *(f"p{n}" for n in range(peers))]
        wrong = self.luck.random() < 0.5
        # Ahead, all of them, so that cards are valid; one who is less so than others is behind them.
        clocks = {name: self.luck.uniform(0, 10_800) * wrong for name in names}
        self.village = Village(
            seed, trackers=1, storage=storage, peers=peers, links=LinkModel(latency), clocks=clocks
        )
        self.said: list[tuple[str, int, bytes]] = []
        self.readers: dict[tuple[str, int], int] = {}
        """How much was said before each subscribed."""

    def say(self, name: str, body: bytes, wait: float) -> None:
        outcome = self.village.publish(name, body, wait=wait)
        assert isinstance(outcome, Published)
        self.said.append((name, outcome.first, body))

    def read(self, name: str, /, **options: object) -> int:
        number = self.village.subscribe(name, **options)  # type: ignore[arg-type]
        self.readers[name, number] = len(self.said)
        return number

    def restart(self, name: str, number: int, subscription: str) -> None:
        """Stop a node and start it, perhaps much later; its durable subscription comes back."""
        self.village.crash(name)
        self.village.run(self.luck.choice((0.0, 1.0, 40.0)))
        self.village.restart(name)
        self.village.network.ask(
            self.village.peer(name), Subscribe(number, STREAM, None, subscription), at=None
        )

    def judge(self, *, least_share: float = 0.0) -> None:
        """Each reader has what was said after it came, once and in order, or was told that it lacks it."""
        village = self.village
        for (name, number), since in self.readers.items():
            due = self.said[since:]
            had = village.bodies(name, number)
            told = {
                (missed.device, seq)
                for missed in village.missed(name, number)
                for seq in range(missed.first, missed.last + 1)
            }
            lacked = {(village.identity[who].card.device, seq) for who, seq, body in due if body not in had}
            assert len(had) == len(set(had)), (name, "doubled")
            assert not set(had) - {body for _, _, body in due}, (name, "old as new")
            assert lacked <= told, (name, "in silence", lacked - told)
            assert len(had) >= least_share * len(due), (name, len(had), len(due))
            for who in {who for who, _, _ in due}:
                order = [
                    item.seq
                    for item in village.items[name, number]
                    if isinstance(item, Event) and item.device == village.identity[who].card.device
                ]
                assert order == sorted(order), name  # type: ignore[type-var]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_readers_that_were_alone_while_something_was_said_get_it_when_they_find_others(seed: int) -> None:
    course = Course(seed, storage=0)
    village, luck = course.village, course.luck
    village.run(1)
    village.crash("t0")
    for name in ("p1", "p2", "p3", "p4"):
        village.run(luck.random())
        course.read(name)
    village.run(luck.choice((1.0, 20.0)))
    for number in range(3):
        course.say("p0", b"early %d" % number, luck.random())
    village.restart("t0")
    village.run(luck.choice((0.0, 0.5, 2.0, 5.0, 20.0)))
    for number in range(2):
        course.say("p0", b"late %d" % number, luck.random())
    village.run(200)
    course.judge(least_share=1.0)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_with_a_storage_node_they_get_it_too_and_nothing_older(seed: int) -> None:
    course = Course(seed, storage=1)
    village, luck = course.village, course.luck
    village.run(3)
    for number in range(luck.choice((1, 5))):
        course.say("p0", b"old %d" % number, luck.random())
    village.run(5)
    village.crash("t0")
    village.run(luck.choice((1.0, 70.0)))
    for name in ("p1", "p2", "p3"):
        course.read(name)
        village.run(0.2 + luck.random())
    for number in range(2):
        course.say("p0", b"early %d" % number, luck.random())
    village.run(luck.choice((0.0, 30.0)))
    village.restart("t0")
    village.run(luck.choice((0.0, 0.5, 2.0, 5.0, 20.0)))
    course.say("p0", b"late", 0.5)
    village.run(100)
    course.judge(least_share=1.0)
    assert village.status("p1").streams[0].stream == STREAM


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_durable_one_made_from_now_is_not_handed_what_was_there_before(seed: int) -> None:
    course = Course(seed, storage=1)
    village, luck = course.village, course.luck
    village.run(3)
    for number in range(30):
        course.say("p0", b"old %d" % number, 0.1)
    village.run(70)
    is_tracker_away = luck.random() < 0.7
    if is_tracker_away:
        village.crash("t0")
    village.run(luck.choice((0.1, 5.0)))
    number = course.read("p1", name="mine", wait=luck.choice((0.0, 0.01, 0.1, 1.0)))
    for _ in range(luck.choice((0, 1, 2))):
        course.restart("p1", number, "mine")
        village.run(luck.choice((0.01, 2.0)))
    for each in range(3):
        course.say("p0", b"new %d" % each, luck.random())
    if is_tracker_away:
        village.restart("t0")
    for _ in range(luck.choice((0, 1))):
        village.run(luck.choice((0.0, 0.5, 5.0)))
        course.restart("p1", number, "mine")
    village.run(luck.choice((0.0, 5.0, 30.0)))
    course.say("p0", b"newest", 1.0)
    village.run(100)
    course.judge(least_share=1.0)


def test_a_live_one_beside_another_that_wants_everything_is_not_handed_what_that_one_fetches() -> None:
    village = Village(peers=3, clocks={"p0": 0.0, "s0": 3600.0, "p1": 7200.0})
    village.run(3)
    for number in range(20):
        village.publish("p0", b"old %d" % number, wait=0.1)
    village.run(70)
    archiver = village.subscribe("p1", name="archiver", since=0.0)
    alerts = village.subscribe("p1", wait=20)
    village.publish("p0", b"new", wait=5)
    assert len(village.bodies("p1", archiver)) == 21
    assert village.bodies("p1", alerts) == [b"new"]


def test_what_nobody_can_resend_is_told_once_and_handed_over_if_it_comes_after_all() -> None:
    village = Village(storage=0, peers=3)
    village.run(1)
    village.network.partition([[village.peer("p2")]])
    reader = village.subscribe("p2", wait=1)
    village.subscribe("p1", wait=5)
    for number in range(3):
        village.publish("p0", b"early %d" % number, wait=0.5)
    village.crash("p0")
    village.network.heal()
    village.run(150)
    device = village.identity["p0"].card.device
    missed = village.missed("p2", reader)
    assert [(each.device, each.first, each.last) for each in missed] == [(device, 0, 2)]
    assert missed[0].reason is Reason.GAP_UNFILLED
    assert missed[0].claimed_by == 1, "p1 alone says so, and has none of it"
    assert "gap_unfilled" in village.reasons("p2")
    village.restart("p0")
    village.publish("p0", b"after", wait=10)
    assert village.bodies("p2", reader) == [b"early 0", b"early 1", b"early 2", b"after"]
    assert village.missed("p2", reader) == missed


@pytest.mark.parametrize("restarts", [False, True])
def test_a_durable_one_beside_another_that_wants_everything_is_not_handed_what_that_one_fetches(
    restarts: bool,
) -> None:
    village = Village(peers=3, clocks={"p0": 0.0, "s0": 3600.0, "p1": 7200.0})
    village.run(3)
    for number in range(20):
        village.publish("p0", b"old %d" % number, wait=0.1)
    village.run(70)
    archiver = village.subscribe("p1", name="archiver", since=0.0)
    alerts = village.subscribe("p1", name="alerts", wait=0.0)
    if restarts:
        village.run(0.1)
        village.crash("p1")
        village.restart("p1")
        for number, name in ((archiver, "archiver"), (alerts, "alerts")):
            village.network.ask(village.peer("p1"), Subscribe(number, STREAM, None, name))
    village.run(20)
    village.publish("p0", b"new", wait=5)
    assert len(village.bodies("p1", archiver)) == 21
    assert village.bodies("p1", alerts) == [b"new"]
