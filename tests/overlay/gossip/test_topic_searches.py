"""Searches: few topics, no tracker, no intersection, and members find each other all the same."""

from __future__ import annotations

from collections.abc import Iterable

from tests.overlay.gossip.gossiping import EPOCH, NOW, described, peer_gossip
from tests.overlay.gossip.village import Village
from tests.overlay.harness import said

from linnet.core.effects import Send
from linnet.core.ids import PeerId, TopicId
from linnet.identity.keys import SigningKey
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.messages import Descriptor, Seek
from linnet.overlay.gossip.profile_filter import bits_of
from linnet.overlay.gossip.random_walk_search import TopicSearches
from linnet.overlay.gossip.topic_tags import TopicKeys, tag_in, topic_keys
from linnet.sim.seeded_random import SeededEntropy

TOPIC = TopicId(bytes([1]) * 32)
OTHER = TopicId(bytes([2]) * 32)


def _showing(number: int, topics: Iterable[TopicKeys]) -> Descriptor:
    """A node that shows these topics, without noise."""
    bits = bits_of([tag_in(keys, EPOCH) for keys in topics], EPOCH, 1024, 1).to_bytes(128, "little")
    return described(SigningKey(bytes([number]) * 32), bits, epsilon_milli=30_000)


def test_members_of_a_single_topic_find_each_other_among_others() -> None:
    village = Village(30, seed=2)
    village.start()
    for at in range(30):
        village.join(at, TOPIC if at % 3 == 0 else OTHER)
    village.run(120.0)
    assert village.is_ring(TOPIC, range(0, 30, 3))
    assert village.is_ring(OTHER, [at for at in range(30) if at % 3])
    assert village.nodes[0].status(village.world.now).intersections == 0


def test_who_joins_long_after_the_filters_were_made_is_found_too() -> None:
    village = Village(20, seed=3)
    village.start()
    for at in range(20):
        village.join(at, OTHER)
    village.run(200.0)
    for at in (4, 9, 15):
        village.join(at, TOPIC)
    village.run(300.0)
    assert village.is_ring(TOPIC, (4, 9, 15))


def test_after_crashes_the_ring_closes_and_opens_again_for_those_who_return() -> None:
    village = Village(24, seed=4)
    village.start()
    for at in range(24):
        village.join(at, TOPIC)
    village.run(120.0)
    for at in (5, 6, 7, 12, 20):
        village.crash(at)
    village.run(150.0)
    left = [at for at in range(24) if at not in (5, 6, 7, 12, 20)]
    assert village.is_ring(TOPIC, left)
    for at in (5, 12):
        village.restart(at)
        village.join(at, TOPIC)
    village.run(150.0)
    assert village.is_ring(TOPIC, sorted([*left, 5, 12]))


def test_answering_searches_is_entered_in_the_account_once_by_those_with_topics() -> None:
    village = Village(12, seed=6)
    village.start()
    for at in range(1, 12):
        village.join(at, TOPIC if at % 2 else OTHER)
    village.run(200.0)
    told = [node.peers.budget.report() for node in village.nodes]
    assert told[0].filters == ()
    epsilon = village.config.epsilon
    answered = [[each.answers_milli for each in one.filters] for one in told[1:]]
    assert {tuple(each) for each in answered} <= {(0,), (round(epsilon * 1000),)}
    assert sum(each == [round(epsilon * 1000)] for each in answered) > 5
    assert max(one.epsilon for one in told) == 2 * epsilon


def test_a_search_goes_further_and_comes_more_rarely_each_time_that_nobody_is_found() -> None:
    village = Village(6, seed=7)
    village.start()
    village.run(100.0)
    gossip, keys = village.nodes[0].peers, topic_keys(TOPIC)
    searches = TopicSearches(gossip, SeededEntropy(1, "searches"))
    searches.add_topic(keys)
    now, far, pauses = village.world.now, list[int](), list[float]()
    began = now
    while len(far) < 5:
        effects = said(gossip.out, searches.begin_search, keys, now)
        seeks = [effect.message for effect in effects if isinstance(effect, Send)]
        if seeks:
            far.append(max(seek.hops for seek in seeks if isinstance(seek, Seek)))
            pauses.append(now - began)
            began = now
        now += 0.5
    whole, pause = village.config.seek_hops, village.config.seek_pause
    limits = [whole // 4, whole // 2, whole, whole, whole]
    assert all(limit // 2 < hops <= limit for hops, limit in zip(far, limits, strict=True))
    assert pauses == [0.0, pause / 4, pause / 2, pause, 2 * pause]
    searches.note_lost(TOPIC)
    assert said(gossip.out, searches.begin_search, keys, now)


def test_a_search_leaves_those_who_are_alike_where_only_few_of_them_show_what_it_looks_for() -> None:
    links: dict[PeerId, None] = {}
    entropy = SeededEntropy(1, "us")
    gossip = peer_gossip(TrackerlessConfig(epsilon=30.0), links=links, entropy=entropy)
    ours = [topic_keys(TopicId(bytes([number]) * 32)) for number in range(100, 110)]
    others = [topic_keys(TopicId(bytes([number]) * 32)) for number in range(120, 140)]
    gossip.own.set_topics({keys.topic: keys for keys in ours}, NOW)
    gossip.clustering.similarity.set_interests(gossip.own_profile(NOW).interests)
    sought = topic_keys(TOPIC)
    for number in range(10):
        told = _showing(10 + number, [*ours, sought] if number < 2 else ours)
        gossip.clustering.handle_answer(told.peer, (told,), (), NOW)
    far = _showing(30, [*others, sought])
    gossip.sampling.add_descriptor(far, NOW)
    assert len(gossip.clustering.view) == 10
    links.update(dict.fromkeys((*gossip.clustering.view, far.peer)))
    searches = TopicSearches(gossip, entropy)
    searches.add_topic(sought)
    effects = said(gossip.out, searches.begin_search, sought, NOW)
    asked = [effect.peer for effect in effects if isinstance(effect, Send)]
    assert len(asked) == gossip.config.seek_walkers
    assert asked[0] == far.peer, "its filter is fuller, so it alone is less likely than the two alike"
