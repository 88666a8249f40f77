"""What a publisher is told of its events, and when: nodes, matches, and those who say nothing."""

from __future__ import annotations

from random import Random

import pytest
from tests.content.chains import chain, fates

from linnet.content.commands import AttributeFate
from linnet.content.config import ContentConfig
from linnet.content.predicate import read_attributes, read_predicate
from linnet.sim.content.world import ContentWorld
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Kind

WANTED = (
    "stock",
    "apple",
    "stock/apple",
    "price[0,50]",
    "stock/price[20,90]",
    "apple/price[40,60)",
    'symbol="A"*',
    'stock/symbol="AAPL"',
    "at{-20,170,20,-170}",
    "at{-90,-180,90,180}/stock",
    "price[1e1,+5e1]",
)
SAID = ("stock", "apple/stock", 'stock/symbol="AAPL"', "at={0,-180}/stock", "at={5,175}/apple", "pear")


def answered_after(world: ContentWorld, request: int, limit: float) -> float:
    """Seconds until something was answered."""
    start = world.network.elapsed
    while request not in world.network.answers and world.network.elapsed < start + limit:
        world.run(0.05)
    return world.network.elapsed - start


def later(trace: ColumnTrace, kind: Kind) -> list[str]:
    found = [row.note for row in trace.rows() if row.kind == kind]
    return [note for note in found if note is not None and "after its publisher was answered" in note]


@pytest.mark.parametrize(("silent", "limit"), [(False, 0.5), (True, 7.0)])
def test_one_dead_subscriber_does_not_hold_up_the_publisher(silent: bool, limit: float) -> None:
    trace = ColumnTrace()
    world, (first, second, third, *_) = chain(4, trace=trace)
    for name in (second, third):
        world.subscribe(name, "stock")
    world.run(3.0)
    world.crash(third, silent=silent)
    request = world.publish(first, "stock", b"x")
    assert answered_after(world, request, 60.0) <= limit
    dead = (world.identities[third].peer,)
    assert fates(world, request) == (
        AttributeFate("stock", 1, 0, None, matches=1, settled=False, silent=dead),
    )
    assert world.bodies(second) == [b"x"]
    world.run(120.0)
    assert len(later(trace, Kind.DROPPED)) == 1, "that it was given up is in the publisher's trace"


def test_who_comes_back_in_time_is_in_the_trace_though_the_publisher_was_answered() -> None:
    trace = ColumnTrace()
    world, (first, second, third, *_) = chain(4, trace=trace)
    world.keep(third, "stock", "kept")
    world.subscribe(second, "stock")
    world.run(3.0)
    world.crash(third)
    request = world.publish(first, "stock", b"x")
    world.run(1.0)
    assert not fates(world, request)[0].settled
    world.come_back(third)
    world.keep(third, "stock", "kept")
    world.run(60.0)
    assert world.bodies(third) == [b"x"]
    assert len(later(trace, Kind.ACKED)) == 1
    assert later(trace, Kind.DROPPED) == []


def test_with_confirm_the_silent_are_waited_for_so_long_and_no_longer() -> None:
    world, (first, second, third, *_) = chain(4)
    for name in (second, third):
        world.subscribe(name, "stock")
    world.run(3.0)
    world.crash(third)
    brief = world.publish(first, "stock", b"x", confirm=5.0)
    assert 5.0 <= answered_after(world, brief, 60.0) <= 5.1
    assert not fates(world, brief)[0].settled
    patient = world.publish(first, "stock", b"y", confirm=300.0)
    assert answered_after(world, patient, 300.0) < 100.0
    assert fates(world, patient) == (AttributeFate("stock", 1, 1, None, matches=1),)


def test_with_confirm_nothing_is_waited_for_where_all_answer() -> None:
    world, (first, second, *_) = chain(4)
    world.subscribe(second, "stock")
    world.run(3.0)
    request = world.publish(first, "stock", b"x", confirm=300.0)
    assert answered_after(world, request, 300.0) < 0.5
    assert fates(world, request) == (AttributeFate("stock", 1, 0, None, matches=1),)


def test_a_rendezvous_that_is_silent_does_not_hold_up_the_publisher() -> None:
    world, (first, second, *_) = chain(4)
    world.run(3.0)
    world.publish(second, "stock", b"before")
    world.run(1.0)
    world.crash(first, silent=True)
    request = world.publish(second, "stock", b"x")
    assert answered_after(world, request, 60.0) <= 7.0
    assert fates(world, request) == (
        AttributeFate("stock", 0, 0, None, settled=False, silent=(world.identities[first].peer,)),
    )


@pytest.mark.parametrize("seed", range(6))
def test_nodes_are_counted_as_nodes_and_matches_as_matches(seed: int) -> None:
    """Judged by brute force: who wants an event, and with how many subscriptions."""
    luck = Random(seed)
    world = ContentWorld(16, seed, ContentConfig(hot=0.0))
    world.run(1.0)
    asked = [(luck.choice(world.names), luck.choice(WANTED)) for _ in range(40)]
    for name, predicate in asked:
        world.subscribe(name, predicate)
    world.run(10.0)
    said: list[tuple[str, int]] = []
    for number in range(30):
        text = luck.choice(
            (*SAID, f"stock/price={luck.randint(0, 99)}", f"apple/price={luck.randint(30, 70)}/stock")
        )
        said.append((text, world.publish(luck.choice(world.names), text, b"%d" % number)))
        world.run(0.5)
    world.run(10.0)
    several = 0
    for text, request in said:
        event = read_attributes(text)
        wanting = [name for name, predicate in asked if read_predicate(predicate).covers(event)]
        told = fates(world, request)
        assert sum(fate.delivered for fate in told) == len(set(wanting)), (text, told)
        assert sum(fate.matches for fate in told) == len(wanting), (text, told)
        assert all(fate.settled and not fate.missed for fate in told)
        several += len(wanting) > len(set(wanting))
    assert several > 5, "often a node has two subscriptions for an event"
