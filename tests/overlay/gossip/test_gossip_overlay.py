"""Nodes without trackers, composed: from two addresses to rings and back after crashes."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.overlay.gossip.village import Village

from linnet.core.hello import Hello
from linnet.core.ids import TopicId
from linnet.core.inputs import LinkDown, LinkUp, Received
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part
from linnet.overlay.gossip.messages import Pull
from linnet.overlay.gossip.topic_tags import epoch_of, tag_in, topic_keys
from linnet.peer.messages import CODEC
from linnet.sim.light_network import PartMachine
from linnet.streams.stream_names import topic_of

TOPICS = [TopicId(bytes([at]) * 32) for at in range(1, 21)]


def _settled(
    count: int, each: int, seconds: float, seed: int = 1
) -> tuple[Village, dict[TopicId, list[int]]]:
    village = Village(count, seed)
    village.start()
    members: dict[TopicId, list[int]] = {topic: [] for topic in TOPICS}
    luck = Random(seed)
    for at in range(count):
        for topic in luck.sample(TOPICS, each):
            village.join(at, topic)
            members[topic].append(at)
    village.run(seconds)
    return village, members


def test_nodes_with_many_topics_find_each_other_and_every_topic_is_connected() -> None:
    village, members = _settled(40, 10, 240.0)
    assert [topic for topic in TOPICS if not village.is_connected(topic, members[topic])] == []
    status = village.nodes[0].status(village.world.now)
    assert len(status.sample) > 15
    assert status.intersections > 0
    # Links are shared: far fewer than four for each of ten topics.
    assert status.held < 30


def test_the_same_seed_gives_the_same_history() -> None:
    hashes = [_settled(20, 10, 120.0, seed)[0].world.sha256() for seed in (3, 3, 4)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_two_that_name_each_other_need_nobody_else() -> None:
    village = Village(5)
    village.start()
    village.join(3, TOPICS[0], keeps=True)
    village.join(4, TOPICS[0], contacts=[3])
    village.run(20.0)
    assert village.neighbors(4, TOPICS[0]) == [3]
    assert village.neighbors(3, TOPICS[0]) == [4]
    assert village.is_ring(TOPICS[0], [3, 4])


def test_a_question_outlives_a_link_that_the_other_end_let_go() -> None:
    village = Village(2)
    village.start()
    village.run(3.0)
    node, other = village.nodes[1], village.peers[0]
    node.peers.pull_from(other, village.world.now)
    node.handle_link_up(LinkUp(other, Hello(1, 1, {}), True, None), village.world.now)
    for reason, stays in (
        (Reason.NOT_NEEDED, True),
        (Reason.DUPLICATE_LINK, True),
        (Reason.REMOTE_CLOSED, False),
    ):
        node.handle_link_down(LinkDown(other, reason), village.world.now)
        assert node.peers.requests.is_asked(other, Pull) is stays


class Overheard(PartMachine):
    """A node that notes what it hears, as bytes."""

    def __init__(self, out: Outbox, *parts: Part) -> None:
        super().__init__(out, *parts)
        self.wire: list[bytes] = []

    def handle(self, event: Any, now: float) -> list[Any]:  # noqa: ANN401 - of whatever messages it has
        if isinstance(event, Received):
            self.wire.append(CODEC.encode(event.message))
        return super().handle(event, now)


class Tapped(Village):
    """Nodes whose every message is noted."""

    def _machine(self, at: int, out: Outbox) -> PartMachine:
        return Overheard(out, self.nodes[at])


def test_no_message_of_the_overlay_names_a_topic_or_holds_a_key_or_a_tag_of_one() -> None:
    """Pulls, like peers, rings, neighbours, searches, answers and intersections, from nothing to rings."""
    names = [f"weather in town {number}" for number in range(4)]
    topics = [topic_of(name) for name in names]
    village = Tapped(12)
    village.start()
    for at in range(12):
        for number in (at % 4, (at + 1) % 4):
            village.join(at, topics[number])
    village.run(150.0)
    assert all(
        village.is_connected(topic, [at for at in range(12) if n in (at % 4, (at + 1) % 4)])
        for n, topic in enumerate(topics)
    )
    keys = [topic_keys(topic, None) for topic in topics]
    epoch = epoch_of(village.world.now, village.config.epoch_days)
    secrets = [name.encode() for name in names] + [bytes(topic) for topic in topics]
    secrets += [each for key in keys for each in (key.tag, key.ring, tag_in(key, epoch))]
    heard = [message for node in village.machines if isinstance(node, Overheard) for message in node.wire]
    assert len(heard) > 500
    whole = b"\n".join(heard)
    assert [secret for secret in secrets if secret in whole] == []
