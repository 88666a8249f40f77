"""Nodes without trackers, composed: from two addresses to rings and back after crashes."""

from __future__ import annotations

from random import Random

from tests.overlay.trackerless.village import Village

from linnet.core.ids import TopicId

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
