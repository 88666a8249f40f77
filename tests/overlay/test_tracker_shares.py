"""A tracker's table is used up: who takes up most gives way, and honest streams go on being found."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.overlay.harness import hints, peer_id

from linnet.core.effects import Send
from linnet.core.fair_shares import Origins
from linnet.core.ids import PeerId, TopicId
from linnet.core.inputs import LinkDown, Received, TimerFired
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.overlay.config import TrackerConfig
from linnet.overlay.messages import Instruction, Join, Leave, Refusal
from linnet.overlay.tracker import AwaitDue, Tracker
from linnet.sim.light_network import PartMachine
from linnet.trace.records import Kind, Record

ANN, BEN, CID, DAN = (peer_id(name) for name in ("ann", "ben", "cid", "dan"))
MOB = [peer_id(f"mob {number}") for number in range(25)]


def topic(name: object) -> TopicId:
    return TopicId(sha256(str(name).encode()).digest())


class Scene:
    """A tracker with a small table, and nodes of several networks."""

    def __init__(self, topics: int = 100, nodes: int = 100, places: int = 1000) -> None:
        out = Outbox()
        self.origins = Origins()
        self.tracker = Tracker(
            TrackerConfig(max_topics=topics, max_nodes=nodes, max_places=places), Random(1), out, self.origins
        )
        self.machine = PartMachine(out, self.tracker)
        self.refused: list[tuple[PeerId, TopicId]] = []

    def of(self, network: str | None, *peers: PeerId) -> None:
        for peer in peers:
            self.origins.note(peer, network)

    def hear(self, peer: PeerId, message: Join | Leave) -> list[Any]:
        effects = self.machine.handle(Received(peer, message), 0.0)
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, Refusal):
                assert effect.message.reason is Reason.TOO_MANY
                self.refused.append((effect.peer, effect.message.topic))
        return effects

    def join(self, peer: PeerId, name: object, neighbors: tuple[PeerId, ...] = ()) -> bool:
        """Return whether the node was given a place."""
        told = self.hear(peer, Join(topic(name), neighbors, hints(peer), 4, False, False))
        self.check()
        return any(
            isinstance(each, Send) and each.peer == peer and isinstance(each.message, Instruction)
            for each in told
        )

    def members(self, name: object) -> set[PeerId]:
        graph = self.tracker.describe_graph(topic(name))
        return set() if graph is None else {peer for peer, _ in graph.edges}

    def check(self) -> None:
        """What is counted is what there is, and no limit is passed."""
        tracker, config = self.tracker, self.tracker._config
        topics = tracker._topics
        assert tracker._places.used == sum(len(each.places) for each in topics.values()) <= config.max_places
        assert tracker._founded.used == len(topics) <= config.max_topics
        for each in topics.values():
            assert len(each.places) <= config.max_nodes
            assert each.founder in each.places
            assert each.topic in tracker._nodes[each.founder].founded
        for node in tracker._nodes.values():
            assert tracker._founded.share(node.peer) == len(node.founded)


def test_keys_of_one_network_that_fill_the_table_do_not_keep_others_out() -> None:
    scene = Scene(topics=100)
    scene.of("10.1.1.0/24", *MOB)
    for number in range(200):
        scene.join(MOB[number % 25], number)
    assert len(scene.tracker.topics) == 100
    scene.refused.clear()
    for number, peer in enumerate((ANN, BEN, CID)):
        scene.of(f"10.2.{number}.0/24", peer)
        assert scene.join(peer, "tea")
    assert scene.members("tea") == {ANN, BEN, CID}
    # One of the mob was put out of a topic of its own, and told.
    assert len(scene.refused) == 1
    assert scene.refused[0][0] in MOB
    # The mob goes on, and takes places of its own alone.
    for number in range(300, 400):
        scene.join(MOB[number % 25], number)
    assert scene.members("tea") == {ANN, BEN, CID}


def test_without_networks_the_keys_that_take_most_give_way() -> None:
    scene = Scene(topics=100)
    for number in range(200):
        scene.join(MOB[number % 25], number)
    assert scene.join(ANN, "tea")
    assert scene.join(BEN, "tea")
    for number in range(300, 400):
        scene.join(MOB[number % 25], number)
    assert scene.members("tea") == {ANN, BEN}


def test_honest_peers_behind_one_address_are_refused_nothing_while_there_is_room() -> None:
    scene = Scene(topics=1000, nodes=1000)
    honest = [peer_id(f"honest {number}") for number in range(200)]
    scene.of("192.0.2.0/24", *honest)
    for number, peer in enumerate(honest):
        assert scene.join(peer, "everybody's")
        assert scene.join(peer, f"own {number}")
    assert scene.refused == []
    assert scene.members("everybody's") == set(honest)


def test_a_full_topic_takes_nodes_of_other_networks() -> None:
    scene = Scene(nodes=25)
    scene.of("10.1.1.0/24", *MOB)
    for peer in MOB:
        assert scene.join(peer, "tea")
    scene.of("10.1.1.0/24", DAN)
    assert not scene.join(DAN, "tea")
    scene.of("10.2.2.0/24", ANN)
    assert scene.join(ANN, "tea")
    assert ANN in scene.members("tea")
    assert len(scene.members("tea")) == 25


def test_a_full_table_of_places_takes_nodes_of_other_networks() -> None:
    scene = Scene(places=60)
    scene.of("10.1.1.0/24", *MOB)
    for number in range(4):
        for peer in MOB:
            scene.join(peer, f"large {number}")
    assert scene.tracker._places.used == 60
    scene.of("10.2.2.0/24", ANN, BEN)
    assert scene.join(ANN, "tea")
    assert scene.join(BEN, "tea")
    assert scene.members("tea") == {ANN, BEN}


def test_a_topic_of_the_greediest_with_others_in_it_is_theirs_from_now_on() -> None:
    scene = Scene(topics=3)
    for name in ("one", "two", "three"):
        scene.join(ANN, name)
    scene.join(BEN, "three")
    assert scene.join(CID, "new")
    assert scene.members("three") == {ANN, BEN}
    assert scene.members("two") == set()
    assert scene.refused == [(ANN, topic("two"))]
    assert not scene.join(CID, "newer"), "Ann has no more than Cid would have"


@pytest.mark.parametrize("networks", ["xx", "xy"])
def test_topics_that_the_greediest_share_are_not_passed_to_and_fro(networks: str) -> None:
    scene = Scene(topics=4)
    for peer, network in zip((ANN, BEN), networks, strict=True):
        scene.of(network, peer)
        for number in range(4):
            scene.join(peer, number)
    scene.of("z", CID)
    assert scene.join(CID, "new")
    assert len(scene.tracker.topics) == 4
    assert scene.members("new") == {CID}


def test_who_was_put_out_is_on_record() -> None:
    scene = Scene(topics=2)
    scene.join(ANN, "one")
    scene.join(ANN, "two")
    effects = scene.hear(BEN, Join(topic("three"), (), hints(BEN), 4, False, False))
    note = "made room for another"
    rejected = Record(Kind.REJECTED, topic("two"), peer=ANN, reason=Reason.TOO_MANY, note=note)
    assert rejected in effects
    assert Send(ANN, Refusal(topic("two"), Reason.TOO_MANY)) in effects


def test_named_neighbours_count_for_who_named_them_until_they_come() -> None:
    scene = Scene(places=12)
    strangers = [peer_id(f"stranger {number}") for number in range(4)]
    for number in range(3):
        scene.join(MOB[0], number, tuple(strangers))
    assert scene.tracker._places.share(MOB[0]) == 12
    # With who named them, the named go: five places in a topic.
    assert scene.join(ANN, "tea")
    assert scene.tracker._places.share(MOB[0]) == 10
    scene.join(strangers[0], 1)
    assert scene.tracker._places.share(MOB[0]) == 9
    assert scene.tracker._places.share(strangers[0]) == 1


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 5), st.integers(0, 3)), max_size=80))
def test_whatever_nodes_do_the_counts_are_right(steps: list[tuple[int, int, int]]) -> None:
    scene = Scene(topics=4, nodes=5, places=12)
    nodes = [peer_id(f"node {number}") for number in range(8)]
    for number, node in enumerate(nodes):
        scene.of("abc"[number % 3], node)
    for who, name, what in steps:
        node = nodes[who]
        if what == 0:
            scene.hear(node, Leave(topic(name), False))
        elif what == 1:
            scene.machine.handle(LinkDown(node, Reason.REMOTE_CLOSED), 0.0)
        elif what == 2:
            scene.machine.handle(TimerFired(AwaitDue(topic(name))), 1000.0)
        scene.join(node, name, named(nodes, who, what))


def named(nodes: list[PeerId], who: int, what: int) -> tuple[PeerId, ...]:
    """Neighbours that a joining node names, some of them unknown."""
    others: Iterable[PeerId] = (nodes[(who + what) % 8], peer_id(f"unknown {who}"))
    return tuple(each for each in others if each != nodes[who]) if what else ()
