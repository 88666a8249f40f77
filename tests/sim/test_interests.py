"""Interests that are drawn: as many as asked for, in communities, no topic empty."""

from __future__ import annotations

import pytest

from linnet.core.errors import ConfigError
from linnet.sim.interests import drawn_interests, members_of


@pytest.mark.parametrize(("nodes", "topics", "each"), [(200, 40, 6), (30, 100, 3), (7, 3, 3), (500, 100, 10)])
def test_everyone_has_topics_and_every_topic_has_two(nodes: int, topics: int, each: int) -> None:
    found = drawn_interests(3, nodes, topics, each)
    assert len(found) == nodes
    assert all(list(own) == sorted(set(own)) and own[-1] < topics for own in found)
    members = members_of(found, topics)
    assert all(len(numbers) >= 2 for numbers in members)
    assert sum(map(len, members)) == sum(map(len, found)) >= nodes * each
    assert all(topic in found[number] for topic, numbers in enumerate(members) for number in numbers)


def test_a_community_shares_more_than_strangers_do() -> None:
    found = drawn_interests(1, 400, 200, 10)
    communities = 400 // 50

    def common(a: int, b: int) -> int:
        return len(set(found[a]) & set(found[b]))

    same = sum(common(node, node + communities) for node in range(200))
    other = sum(common(node, node + 1) for node in range(200))
    assert same > 1.8 * other


def test_seeds_and_limits() -> None:
    assert drawn_interests(1, 20, 5, 2) == drawn_interests(1, 20, 5, 2) != drawn_interests(2, 20, 5, 2)
    with pytest.raises(ConfigError, match="1 to 5"):
        drawn_interests(1, 20, 5, 6)
