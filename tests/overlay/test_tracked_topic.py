from __future__ import annotations

from random import Random

from tests.overlay.harness import TOPIC, peer_id

from linnet.core.fair_shares import FairShares, Origins
from linnet.core.ids import PeerId
from linnet.core.limits import STORAGE_NODES
from linnet.overlay.config import TrackerConfig
from linnet.overlay.messages import Join, NeighborStatus
from linnet.overlay.tracked_topic import TrackedTopic

PEERS = [peer_id(number) for number in range(40)]


def join(*neighbors: PeerId, storage: bool = False) -> Join:
    return Join(TOPIC, neighbors, (), 4, storage, False)


def tracked(nodes: int = 0, config: TrackerConfig | None = None) -> TrackedTopic:
    origins = Origins()
    shares = FairShares(100, origins)
    made = TrackedTopic(TOPIC, join(), PEERS[0], config or TrackerConfig(), Random(1), shares, origins, 0.0)
    for peer in PEERS[:nodes]:
        made.join_node(peer, join(), True, 0.0)
    return made


def test_joins_are_built_at_once() -> None:
    topic = tracked(1)
    assert set(topic.join_node(PEERS[1], join(), True, 0.0)) == {PEERS[0], PEERS[1]}
    assert topic.describe_graph().edges == ((PEERS[0], (PEERS[1],)), (PEERS[1], (PEERS[0],)))
    assert topic.describe_graph().degree == 4


def test_a_take_over_learns_first_and_builds_later() -> None:
    topic = tracked()
    first = join(PEERS[1], PEERS[2])
    assert topic.is_takeover(first, 0.0)
    topic.begin_settling()
    assert topic.is_settling
    # PEERS[2] is named, but has not come: it has a place, and nothing is built for it.
    topic.join_node(PEERS[0], first, True, 0.0)
    topic.join_node(PEERS[1], join(PEERS[0], PEERS[2]), True, 0.5)
    topic.join_node(PEERS[3], join(), True, 1.0)
    assert topic.graph.neighbors(PEERS[3]) == ()
    assert topic.awaited == {PEERS[2]: 60.0}
    assert not topic.is_takeover(first, 1.0)
    assert topic.end_settling() == [PEERS[0], PEERS[1], PEERS[3]]
    assert not topic.is_settling
    assert set(topic.graph.neighbors(PEERS[0])) == {PEERS[1], PEERS[2], PEERS[3]}
    assert set(topic.graph.neighbors(PEERS[2])) == {PEERS[0], PEERS[1]}


def test_a_topic_that_stands_does_not_settle_for_one_who_comes_back() -> None:
    topic = tracked(10)
    assert not topic.is_takeover(join(PEERS[1]), 100.0)
    assert topic.is_takeover(join(PEERS[1]), 1.0)
    assert not tracked(10, TrackerConfig(settle=0.0)).is_takeover(join(PEERS[1]), 0.0)


def test_a_failed_pair_is_excluded_for_a_while() -> None:
    topic = tracked(5)
    changed = topic.note_failed_links(PEERS[0], [PEERS[1]], 0.0)
    assert set(changed) == {PEERS[0], PEERS[1]}
    assert not topic.graph.is_adjacent(PEERS[0], PEERS[1])
    assert topic.next_forgetting_at() == 60.0
    assert topic.forget_failures(59.0) == []
    assert set(topic.forget_failures(60.0)) == {PEERS[0], PEERS[1]}
    assert topic.graph.is_adjacent(PEERS[0], PEERS[1])
    assert topic.next_forgetting_at() is None


def test_a_node_that_comes_back_is_forgiven() -> None:
    topic = tracked(5)
    topic.note_failed_links(PEERS[0], [PEERS[1], PEERS[2]], 0.0)
    topic.keep_place(PEERS[0], 5.0)
    topic.join_node(PEERS[0], join(), True, 1.0)
    assert len(topic.graph.neighbors(PEERS[0])) == 4
    assert topic.awaited == {}


def test_lost_nodes_keep_their_place_and_get_no_new_neighbors() -> None:
    topic = tracked(20)
    kept = topic.graph.neighbors(PEERS[3])
    topic.keep_place(PEERS[3], 5.0)
    for peer in PEERS[20:30]:
        topic.join_node(peer, join(), True, 1.0)
    assert topic.graph.neighbors(PEERS[3]) == kept
    assert set(topic.remove_node(PEERS[3])) >= set(kept)
    assert PEERS[3] not in topic.places


def test_round_trip_times_of_nodes_that_are_here_are_kept() -> None:
    topic = tracked(3)
    reported = [NeighborStatus(PEERS[1], 20_000), NeighborStatus(PEERS[2], None), NeighborStatus(PEERS[9], 1)]
    assert topic.note_rtts(PEERS[0], reported) == [(PEERS[1], 0.02)]
    assert topic.describe_graph().rtts == ((PEERS[0], PEERS[1], 0.02),)


def test_storage_nodes_are_named_at_random_and_kept() -> None:
    topic = tracked(5)
    for peer in PEERS[5:25]:
        topic.join_node(peer, join(storage=True), True, 0.0)
    named = topic.storage_for(PEERS[0])
    assert len(named) == len(set(named)) == STORAGE_NODES
    assert set(named) <= set(PEERS[5:25])
    assert topic.storage_for(PEERS[5]) != topic.storage_for(PEERS[6])
    assert PEERS[5] not in topic.storage_for(PEERS[5])
    topic.places[PEERS[0]].told_storage = named
    assert topic.storage_for(PEERS[0]) == named
    assert PEERS[0] not in topic.find_misinformed()
    assert PEERS[1] in topic.find_misinformed()
    topic.remove_node(named[0])
    assert PEERS[0] in topic.find_misinformed()
    assert topic.storage_for(PEERS[0])[: STORAGE_NODES - 1] == named[1:]
    # One that stores no longer is not named either.
    topic.join_node(named[1], join(), True, 0.0)
    assert named[1] not in topic.storage_for(PEERS[0])
