"""A topic among simulated nodes: whole, in causal order, each event once, whatever is lost or cut."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from linnet.core.effects import Hold
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.inputs import LinkDown, LinkUp
from linnet.event.event import Event
from linnet.overlay.notices import NeighborDown, NeighborUp
from linnet.sim.clock import START
from linnet.sim.light_network import LightNetwork
from linnet.sim.light_topic import HeadsDue, LightPeer, LightTopic, TopicSetting, references
from linnet.sim.links import LinkModel, constant_latency
from linnet.sim.seeded_random import named_luck, seeded_identity
from linnet.sim.signature_cache import RememberingVerifier

TOPIC = TopicId(b"t" * 32)


class Fixed:
    """An overlay whose neighbours are those that it was given."""

    def __init__(self, peers: Sequence[PeerId]) -> None:
        self.peers = peers
        self.up: dict[PeerId, None] = {}

    def neighbors(self, topic: TopicId) -> tuple[PeerId, ...]:
        """See `OverlayMachine.neighbors`."""
        return tuple(self.up)

    def start(self) -> list[Any]:
        """Links to all of them."""
        return [Hold(peer, (), "fixed") for peer in self.peers]

    def handle(self, event: Any, now: float) -> list[Any]:  # noqa: ANN401 - as of a machine
        """See `OverlayMachine.handle`."""
        if isinstance(event, LinkUp):
            self.up[event.peer] = None
            return [NeighborUp(TOPIC, event.peer)]
        if isinstance(event, LinkDown):
            del self.up[event.peer]
            return [NeighborDown(TOPIC, event.peer)]
        return []


class Circle:
    """Nodes on a ring with a few chords, all in one topic."""

    def __init__(self, seed: int, size: int, loss: float = 0.0, pause: float = 30.0) -> None:
        self.world = LightNetwork(seed, LinkModel(constant_latency(50.0), loss=loss))
        self.rng = named_luck(seed, "test")
        identities = [seeded_identity(seed, f"node-{number}", START) for number in range(size)]
        self.peers = [identity.peer for identity in identities]
        cards = {(each.author, each.card.device): each.card for each in identities}
        setting = TopicSetting(cards, RememberingVerifier(), self.hand, pause=pause)
        self.handed: dict[PeerId, list[Event]] = {peer: [] for peer in self.peers}
        self.had: dict[PeerId, set[EventId]] = {peer: set() for peer in self.peers}
        self.hops: list[int] = []
        self.nodes: dict[PeerId, LightPeer] = {}
        for number, identity in enumerate(identities):
            near = [self.peers[(number + step) % size] for step in (1, 2, size // 2)]
            luck = Random(number)
            topic = LightTopic(TOPIC, identity, self.route, luck, setting)
            node = LightPeer(identity.peer, Fixed(near), [TOPIC], {TOPIC: topic}.__getitem__)
            self.nodes[identity.peer] = node
            self.world.add(identity.peer, node)
            self.world.perform(identity.peer, Fixed(near).start())

    def route(self, sources: tuple[PeerId, ...], up: Sequence[PeerId]) -> list[PeerId]:
        """Three of those that do not have it."""
        able = [peer for peer in up if peer not in sources]
        return self.rng.sample(able, min(3, len(able)))

    def hand(self, peer: PeerId, event: Event, hops: int, now: float) -> None:
        """An application, which sees to it that causes come first."""
        had = self.had[peer]
        assert event.id not in had
        assert all(ref in had for ref in references(event))
        had.add(event.id)
        self.handed[peer].append(event)
        self.hops.append(hops)

    def say(self, number: int) -> EventId:
        """One node publishes."""
        peer = self.peers[number % len(self.peers)]
        topic = self.nodes[peer].topic(TOPIC)
        assert topic is not None
        event, effects = topic.publish(b"%d" % number, self.world.now)
        self.world.perform(peer, effects)
        return event.id

    def talk(self, count: int, turn: int, pause: float, since: float = 2.0) -> set[EventId]:
        """So many are said, each by another some turns on, with pauses from then on."""
        said = set()
        for number in range(count):
            said.add(self.say(number * turn))
            self.world.run(since + pause * number)
        return said

    def everyone_has(self, events: set[EventId]) -> bool:
        """Whether all have exactly these."""
        return all({event.id for event in got} == events for got in self.handed.values())


def test_all_get_all_without_loss() -> None:
    circle = Circle(1, 12)
    circle.world.run(2.0)
    said = circle.talk(20, 5, 0.08)
    circle.world.run(150.0)
    assert circle.everyone_has(said)
    assert 1 <= max(circle.hops) <= 6
    copies = sum(node.topics[TOPIC].copies for node in circle.nodes.values())
    fetched = sum(node.topics[TOPIC].fetched for node in circle.nodes.values())
    assert 20 * 11 <= copies + fetched <= 20 * 12 * 3
    assert len(circle.nodes[circle.peers[0]].topics[TOPIC]) == 20


def test_after_silence_each_neighbour_is_told_before_anyone_is_told_again() -> None:
    identity = seeded_identity(1, "one", START)
    cards = {(identity.author, identity.card.device): identity.card}
    topic = LightTopic(
        TOPIC, identity, None, Random(1), TopicSetting(cards, RememberingVerifier(), lambda *_: None)
    )
    peers = [seeded_identity(1, f"other-{number}", START).peer for number in range(5)]
    for peer in peers:
        topic.add_neighbor(peer)
    topic.publish(b"the last word", START)
    told, pauses = [], []
    for _ in range(8):
        timer, sent = topic.handle_timer(HeadsDue(TOPIC))
        told.append(sent.peer)
        pauses.append(timer.delay)
    assert set(told[:5]) == set(peers)
    assert max(pauses[:5]) <= 45.0 < pauses[7]


@pytest.mark.parametrize("seed", range(6))
def test_loss_is_repaired_and_nothing_comes_twice_or_too_early(seed: int) -> None:
    circle = Circle(seed, 10, loss=0.15)
    circle.world.run(2.0)
    said = circle.talk(30, 7, 0.3)
    circle.world.run(600.0)
    assert circle.everyone_has(said)
    assert not any(node.topics[TOPIC].waiting for node in circle.nodes.values())
    assert sum(node.topics[TOPIC].fetched for node in circle.nodes.values()) > 0


def course(seed: int, pause: float) -> int:
    """Ten speak in quick turns, three messages in ten are lost; returns how many events somebody lacks."""
    circle = Circle(seed, 10, 0.3, pause)
    circle.world.run(2.0)
    said = circle.talk(20, 7, 0.07)
    circle.world.run(600.0)
    return sum(len(said) - len(had) for had in circle.had.values())


def test_without_telling_heads_the_last_events_stay_lost() -> None:
    """Nothing refers to them yet, so nobody can miss them: telling heads after a pause is what ends that."""
    assert sum(course(seed, pause=1e9) for seed in range(3)) > 0
    assert [course(seed, pause=30.0) for seed in range(3)] == [0, 0, 0]


def test_two_halves_that_went_on_apart_have_all_after_they_meet() -> None:
    circle = Circle(3, 10)
    circle.world.run(2.0)
    circle.world.partition([circle.peers[:5]])
    said = circle.talk(150, 3, 0.2, 3.0)
    assert not circle.everyone_has(said)
    circle.world.heal()
    circle.world.run(120.0)
    assert circle.everyone_has(said)


def test_after_an_hour_apart_all_is_everywhere_within_a_minute() -> None:
    """Nothing is told too early either: whoever is handed an event has its causes (`Circle.hand`)."""
    circle = Circle(6, 8)
    circle.world.run(2.0)
    circle.world.partition([circle.peers[:4]])
    said = circle.talk(60, 3, 60.0)
    circle.world.run(3602.0)
    assert not circle.everyone_has(said)
    circle.world.heal()
    healed = circle.world.elapsed
    while not circle.everyone_has(said) and circle.world.elapsed < healed + 600.0:
        circle.world.run(circle.world.elapsed + 1.0)
    assert circle.world.elapsed - healed <= 60.0


def test_one_who_was_away_has_all_after_it_is_back() -> None:
    circle = Circle(4, 8)
    circle.world.run(2.0)
    said = {circle.say(0)}
    circle.world.run(4.0)
    gone = circle.peers[3]
    circle.world.crash(gone)
    for number in range(10):
        said.add(circle.say(5 + 8 * number))
        circle.world.run(4.0 + number)
    node = circle.nodes[gone]
    node.topics[TOPIC].revive(circle.route)
    circle.world.restart(gone, node)
    assert len(circle.handed[gone]) == 1
    circle.world.run(60.0)
    assert circle.everyone_has(said)


def test_whoever_passes_nothing_on_is_worked_around_and_noise_is_counted() -> None:
    circle = Circle(5, 9)
    circle.nodes[circle.peers[4]].silent = True
    outside = circle.nodes[circle.peers[7]]
    del outside.subscribed[TOPIC]
    circle.world.run(2.0)
    said = {circle.say(1), circle.say(2)}
    circle.world.run(300.0)
    for number, peer in enumerate(circle.peers):
        if number != 4:
            assert {event.id for event in circle.handed[peer]} == (said if number != 7 else set())
    assert outside.noise > 0
