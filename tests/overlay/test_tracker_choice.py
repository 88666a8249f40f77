from __future__ import annotations

from collections import Counter
from hashlib import sha256
from random import Random

import pytest
from tests.overlay.harness import hints, peer_id

from linnet.core.ids import Contact, TopicId
from linnet.overlay.tracker_choice import TrackerChoice

TOPICS = [TopicId(sha256(number.to_bytes(4, "big")).digest()) for number in range(2000)]
TRACKERS = [Contact(peer_id(f"tracker {n}"), hints(peer_id(f"tracker {n}"))) for n in range(10)]


def test_topics_are_spread_evenly() -> None:
    registry = TrackerChoice(TRACKERS)
    shares = Counter(registry.choose_trackers(topic)[0] for topic in TOPICS)
    assert len(registry) == len(shares) == 10
    assert all(share == pytest.approx(200, rel=0.35) for share in shares.values())


def test_the_order_in_which_trackers_are_known_does_not_matter() -> None:
    shuffled = Random(1).sample(TRACKERS, len(TRACKERS))
    one, other = TrackerChoice(TRACKERS), TrackerChoice([*shuffled, shuffled[0]])
    for topic in TOPICS[:200]:
        assert one.choose_trackers(topic) == other.choose_trackers(topic)
        assert len(one.choose_trackers(topic)) == len(TRACKERS)


def test_networks_with_trackers_of_their_own_name_those_and_no_others() -> None:
    public, private = TrackerChoice(TRACKERS[:7]), TrackerChoice(TRACKERS[7:])
    for topic in TOPICS[:20]:
        assert set(public.choose_trackers(topic)) == set(TRACKERS[:7])
        assert set(private.choose_trackers(topic)) == set(TRACKERS[7:])


def test_without_one_of_ten_only_its_own_topics_move_and_to_their_standby() -> None:
    whole, rest = TrackerChoice(TRACKERS), TrackerChoice(TRACKERS[1:])
    moved = 0
    for topic in TOPICS:
        first, standby = whole.choose_trackers(topic, count=2)
        if first == TRACKERS[0]:
            moved += 1
            assert rest.choose_trackers(topic)[0] == standby
        else:
            assert rest.choose_trackers(topic)[0] == first
    assert moved / len(TOPICS) == pytest.approx(0.1, rel=0.35)


def test_all_trackers_are_named_once_in_order_of_preference() -> None:
    registry = TrackerChoice(TRACKERS)
    order = registry.choose_trackers(TOPICS[0])
    assert sorted(contact.peer for contact in order) == sorted(contact.peer for contact in TRACKERS)
    assert registry.choose_trackers(TOPICS[0], count=3) == order[:3]


def test_the_owners_list_stands_as_it_is() -> None:
    own = (TRACKERS[7], TRACKERS[2], TRACKERS[7])
    assert TrackerChoice(TRACKERS).choose_trackers(TOPICS[0], own) == (TRACKERS[7], TRACKERS[2])
    assert TrackerChoice([]).choose_trackers(TOPICS[0], own, count=1) == (TRACKERS[7],)


def test_a_network_without_trackers_names_none() -> None:
    assert TrackerChoice([]).choose_trackers(TOPICS[0]) == ()
