"""Subscriptions and events over chains of real nodes, and what hostile peers come to."""

from __future__ import annotations

import pytest
from tests.content.chains import chain, fates, nearest_first
from tests.content.one_scout import (
    FAR,
    FARTHER,
    NEAR,
    published,
    rejected,
    scout,
    sends,
)

from linnet.content.commands import AttributeFate, Ended, Outcome, PublishContent
from linnet.content.config import ContentConfig
from linnet.content.messages import Notice, Reached, Subscribe
from linnet.content.scout import PeriodDue
from linnet.core.effects import Reply, Send, SetTimer
from linnet.core.errors import BadText, Refused
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.machine.commands import Declined
from linnet.sim.clock import START
from linnet.sim.content.world import ContentWorld
from linnet.sim.links import LinkModel, named_latency
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Kind, Record

UNRELIABLE = ContentConfig(reliable=False)


@pytest.mark.parametrize(
    "config",
    [ContentConfig(), UNRELIABLE, ContentConfig(redirect=True), ContentConfig(redirect=True, reliable=False)],
)
def test_a_subscription_leaves_filters_all_the_way_and_events_follow_them_back(config: ContentConfig) -> None:
    world, (first, second, third, last, *_) = chain(5, config)
    world.subscribe(last, "stock")
    world.run(3.0)
    assert [len(world.scouts[name].table) for name in (first, second, third, last)] == [1, 1, 1, 1]
    world.publish(second, "stock", b"one")
    world.publish(first, "stock/apple", b"two")
    world.publish(last, "stock/price=3", b"three")
    world.run(5.0)
    assert sorted(world.bodies(last)) == [b"one", b"three", b"two"]
    assert all(not world.bodies(name) for name in (first, second, third))


def test_the_publisher_learns_what_became_of_an_event_at_each_rendezvous() -> None:
    world, (first, _, third, last, *_) = chain(5)
    for name in (first, third, last):
        world.subscribe(name, "stock")
    world.run(3.0)
    wanted, unwanted = world.publish(third, "stock", b"one"), world.publish(third, "pear", b"two")
    world.run(5.0)
    assert fates(world, wanted) == (AttributeFate("stock", 3, 0, None, matches=3),)
    assert fates(world, unwanted) == (AttributeFate("pear", 0, 0, None),)


def first_notices(config: ContentConfig) -> list[tuple[str, str]]:
    trace = ColumnTrace()
    world, ordered = chain(4, config, trace=trace)
    for name in ordered:
        world.subscribe(name, "stock")
    world.run(3.0)
    world.publish(ordered[2], "stock", b"x")
    world.run(5.0)
    places = {world.identities[name].peer: str(place) for place, name in enumerate(ordered)}
    return [
        (places[PeerId(row.node)], places[PeerId(row.peer or b"")])
        for row in trace.rows()
        if row.kind == Kind.RECEIVED and row.note == "notice"
    ]


def test_reliable_events_start_down_at_the_rendezvous_and_others_at_each_hop() -> None:
    # Node 2 of the chain publishes; each pair is who received, and from whom.
    assert first_notices(ContentConfig()) == [("1", "0"), ("2", "1"), ("3", "2")]
    assert first_notices(UNRELIABLE) == [("3", "2")]


def test_an_ended_subscription_is_gone_everywhere_and_an_equal_one_of_another_stays() -> None:
    world, (first, second, third, last, *_) = chain(5)
    number = world.subscribe(last, "stock/price[1,5]")
    other = world.subscribe(third, "stock/price[4,9]")
    world.run(3.0)
    ended = world.unsubscribe(last, number)
    world.run(3.0)
    assert world.network.answers[ended] == Ended()
    world.publish(first, "stock/price=2", b"not any more")
    world.publish(first, "stock/price=5", b"still")
    world.run(5.0)
    assert (world.bodies(last), world.bodies(third)) == ([], [b"still"])
    world.unsubscribe(third, other)
    world.run(3.0)
    assert [len(world.scouts[name].table) for name in (first, second, third, last)] == [0, 0, 0, 0]


def test_where_one_of_two_equal_subscriptions_ends_the_other_stays() -> None:
    world, (first, second, third, last, *_) = chain(5)
    number = world.subscribe(last, "stock/price[1,5]")
    world.subscribe(third, "stock/price[1,5]")
    world.subscribe(second, "stock/price[1,5]")
    world.run(3.0)
    world.unsubscribe(last, number)
    world.run(3.0)
    world.publish(first, "stock/price=2", b"still")
    world.run(5.0)
    assert [world.bodies(name) for name in (second, third, last)] == [[b"still"], [b"still"], []]


def test_what_is_not_told_again_ends_within_three_periods() -> None:
    world, (first, second, third, *_) = chain(4, ContentConfig(refresh=20.0))
    world.subscribe(third, "stock")
    world.subscribe(second, "stock")
    world.run(100.0)
    assert len(world.scouts[first].table) == 1
    assert len(world.scouts[second].table) == 2
    world.crash(third)
    world.run(61.0)
    assert len(world.scouts[second].table) == 1
    world.publish(first, "stock", b"x")
    world.run(5.0)
    assert world.bodies(second) == [b"x"]


def test_what_is_not_told_again_over_a_link_that_stands_ends_within_three_periods() -> None:
    machine = scout()
    machine.hear(FAR, Subscribe(1, "stock", "stock", 0), START)
    left = []
    for _ in range(3):
        machine.fire(PeriodDue(), START)
        left.append(len(machine.scout.table))
    assert left == [1, 1, 0]


def test_an_event_is_handed_over_once_whatever_its_ways() -> None:
    world = ContentWorld(12, 3)
    world.run(0.5)
    for predicate in ("a", "b", "c", "a/b", "b/c"):
        world.subscribe("node1", predicate)
    world.run(3.0)
    world.publish("node2", "a/b/c", b"x")
    world.run(5.0)
    matches = world.matches["node1"]
    assert len({match.event for match, _ in matches}) == 1
    assert len(matches) == 5, "once for each subscription that accepts it"


def test_equal_events_of_one_moment_are_two() -> None:
    world = ContentWorld(8, 1)
    world.run(0.5)
    world.subscribe("node1", "a")
    world.run(3.0)
    for _ in range(2):
        world.publish("node2", "a", b"same")
    world.run(5.0)
    assert world.bodies("node1") == [b"same", b"same"]


def test_a_subscriber_that_is_the_rendezvous_asks_nobody_and_hears_everything() -> None:
    world, (first, second, *_) = chain(4)
    world.subscribe(first, "stock")
    world.run(3.0)
    assert [len(world.scouts[name].table) for name in world.names].count(0) == 3
    world.publish(second, "stock", b"x")
    world.publish(first, "stock", b"y")
    world.run(5.0)
    assert sorted(world.bodies(first)) == [b"x", b"y"]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_without_a_node_of_the_way_others_take_its_part(place: int) -> None:
    world = ContentWorld(20, 2)
    ordered = nearest_first(world)
    world.run(0.5)
    for name in ordered[10:]:
        world.subscribe(name, "stock")
    world.run(3.0)
    world.crash(ordered[place])
    world.run(1.0)
    request = world.publish(ordered[9], "stock", b"x")
    world.run(120.0)
    assert [name for name in ordered[10:] if world.bodies(name) != [b"x"]] == []
    assert isinstance(world.network.answers[request], Outcome)


def lossy(loss: float, seed: int) -> tuple[int, int]:
    """Twelve subscribers and eight events over links that lose messages: what is missing, what is told."""
    world = ContentWorld(20, seed, links=LinkModel(named_latency("constant:10"), loss=loss))
    world.run(2.0)
    for name in world.names[:12]:
        world.subscribe(name, "stock/price[0,10]")
    world.run(60.0)
    said = {name: f"stock/price={number}" for number, name in enumerate(world.names[12:])}
    requests = [world.publish(name, text, name.encode()) for name, text in said.items()]
    world.run(400.0)
    missing = sum(name.encode() not in world.bodies(reader) for reader in world.names[:12] for name in said)
    told = [fate for request in requests for fate in fates(world, request)]
    return missing, sum(fate.missed + (fate.reason is not None) for fate in told)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_lost_on_links_is_sent_again(seed: int) -> None:
    assert lossy(0.05, seed) == (0, 0)


@pytest.mark.parametrize("seed", range(3))
def test_who_moves_to_another_next_hop_is_sent_what_went_by_meanwhile(seed: int) -> None:
    """With so much loss pings fail, links close all the time and nodes move; nothing is missing for that."""
    assert lossy(0.15, seed)[0] == 0


def test_a_branch_that_does_not_answer_is_told_to_the_publisher() -> None:
    world, (first, second, third, *_) = chain(4)
    world.subscribe(third, "stock")
    world.subscribe(second, "stock")
    world.run(3.0)
    world.crash(third)
    request = world.publish(first, "stock", b"x", confirm=100.0)
    world.run(120.0)
    assert fates(world, request) == (AttributeFate("stock", 1, 1, None, matches=1),)


def test_a_subscription_is_told_again_until_it_is_answered() -> None:
    machine = scout(ContentConfig(tries=2))
    assert machine.scout.admit_subscription(9, "stock") == "stock"
    assert machine.out.take_said() == []
    machine.scout.begin_subscription(9, START)
    effects = machine.out.take_said()
    told = [sends([*effects])]
    for _ in range(2):
        (timer,) = [each.timer for each in effects if isinstance(each, SetTimer)]
        effects = machine.fire(timer, START)
        told.append(sends([*effects]))
    assert told[0] == [Send(NEAR, Subscribe(1, "stock", "stock", 0))]
    assert told[1] == [Send(NEAR, Subscribe(2, "stock", "stock", 0))]
    assert told[2] == [], "who does not answer is not asked for a while, and a lookup begins"


def test_what_the_application_asks_wrongly_is_declined() -> None:
    machine = scout(ContentConfig(subscriptions=1))
    with pytest.raises(BadText, match=r"\^"):
        machine.scout.admit_subscription(1, "stock[")
    machine.subscribe(1, "stock")
    for number, reason in ((1, Reason.IN_USE), (2, Reason.TOO_MANY)):
        with pytest.raises(Refused) as caught:
            machine.scout.admit_subscription(number, "a")
        assert caught.value.reason is reason
    assert machine.out.take_said() == []
    (reply,) = machine.ask(3, PublishContent("stock", bytes(300_000)), START)
    assert isinstance(reply, Reply)
    assert isinstance(reply.result, Declined)


def test_an_acknowledgement_counts_only_from_who_owes_it() -> None:
    machine = scout()
    machine.hear(FAR, Subscribe(1, "stock", "stock", 0), START)
    unit, card = published()
    effects = machine.hear(NEAR, Notice("stock", unit, card, 1), START)
    (sent,) = sends([*effects])
    assert isinstance(sent, Send)
    assert (sent.peer, type(sent.message)) == (FAR, Notice)
    event = next(each.event for each in effects if isinstance(each, Record))
    assert event is not None
    assert rejected([*machine.hear(FARTHER, Reached(event, "stock", 9, 0), START)]) == [Reason.STALE]
    done = machine.hear(FAR, Reached(event, "stock", 1, 0), START)
    assert sends([*done]) == [Send(NEAR, Reached(event, "stock", 1, 0))]
    again = machine.hear(NEAR, Notice("stock", unit, card, 1), START)
    assert sends([*again]) == [Send(NEAR, Reached(event, "stock", 1, 0))]


def test_a_node_answers_when_all_below_it_have() -> None:
    machine = scout()
    for peer in (FAR, FARTHER):
        machine.hear(peer, Subscribe(1, "stock", "stock", 0), START)
    unit, card = published()
    effects = machine.hear(NEAR, Notice("stock", unit, card, 1), START)
    assert [each.peer for each in effects if isinstance(each, Send)] == [FAR, FARTHER]
    event = next(each.event for each in effects if isinstance(each, Record))
    assert event is not None
    assert sends([*machine.hear(FAR, Reached(event, "stock", 1, 0), START)]) == []
    last = machine.hear(FARTHER, Reached(event, "stock", 2, 0), START)
    assert sends([*last]) == [Send(NEAR, Reached(event, "stock", 3, 0))]
