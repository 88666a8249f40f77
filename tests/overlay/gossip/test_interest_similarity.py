"""Likeness: the estimates of one node, remembered as long as they hold."""

from __future__ import annotations

from tests.overlay.gossip.interested import described, own_interests

from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.interest_clustering import InterestSimilarity
from linnet.overlay.gossip.profile_filter import common_topics, cosine, evidence, read_filter, two_sided

TOPICS = list(range(30))


def likeness() -> InterestSimilarity:
    one = InterestSimilarity()
    one.set_interests(own_interests(TOPICS))
    return one


def test_it_is_the_one_sided_estimate() -> None:
    one, other = likeness(), described(1, [*TOPICS[10:], 100, 101])
    own = own_interests(TOPICS)
    assert one.cosine(other) == cosine(own.bits, read_filter(other)) > 0.4
    assert one.common_topics(other) == common_topics(own.bits, 30, read_filter(other))
    assert one.find_filter(other) == read_filter(other)


def test_it_changes_with_the_descriptor_and_with_our_topics() -> None:
    one = likeness()
    assert one.cosine(described(1, TOPICS)) > 0.7
    assert one.cosine(described(1, list(range(100, 130)), version=2)) < 0.3
    again = described(1, TOPICS, version=3)
    before = one.cosine(again)
    one.set_interests(own_interests(list(range(100, 130))))
    assert one.cosine(again) < 0.3 < before


def test_filters_of_the_epoch_before_are_still_compared_and_older_ones_are_not() -> None:
    one = likeness()
    one.set_interests(own_interests(TOPICS, epoch=1))
    old, new = described(1, TOPICS, epoch=0), described(2, TOPICS, epoch=1)
    assert one.cosine(old) > 0.7
    assert one.cosine(new) > 0.7
    one.set_interests(own_interests(TOPICS, epoch=2))
    assert one.cosine(old) == one.common_topics(old) == 0.0
    assert one.own_interests(old) is None
    assert one.cosine(new) > 0.7


def test_an_epoch_of_a_clock_that_was_set_back_counts() -> None:
    one = likeness()
    one.set_interests(own_interests(TOPICS, epoch=8))
    one.set_interests(own_interests(TOPICS, epoch=9))
    one.set_interests(own_interests(TOPICS, epoch=0))
    assert one.cosine(described(1, TOPICS, epoch=0)) > 0.7


def test_filters_that_are_not_credible_or_of_another_shape_show_nothing() -> None:
    one = likeness()
    assert one.cosine(described(1, [], filter=b"\xff" * 128)) == 0.0
    assert one.find_filter(described(1, [], filter=b"\xff" * 128)) is None
    assert one.find_filter(described(2, [], filter=b"")) is None
    assert one.cosine(described(3, TOPICS, filter=described(3, TOPICS).filter[:64])) == 0.0


def test_memory_is_bounded() -> None:
    one = InterestSimilarity(remembered=10)
    one.set_interests(own_interests(TOPICS))
    values = [one.cosine(described(number, TOPICS)) for number in range(30)]
    assert len(one._judged) == 10
    assert [one.cosine(described(number, TOPICS)) for number in range(30)] == values


def test_two_others_are_compared_by_what_both_show_within_one_epoch_and_shape() -> None:
    one, asking = likeness(), described(1, TOPICS)
    small = TrackerlessConfig(filter_bits=512)
    like, old = described(2, TOPICS[10:]), described(3, TOPICS, epoch=1)
    others = [like, old, described(4, TOPICS, config=small), described(5, [], filter=b"\xff" * 128)]
    assert one.common_bits(asking, others) == [
        two_sided(read_filter(asking), read_filter(like)),
        0.0,
        0.0,
        0.0,
    ]
    assert one.common_bits(others[3], others) == [0.0] * 4


def test_what_a_filter_says_for_its_bits_is_nothing_unless_it_is_credible() -> None:
    one, other = likeness(), described(1, TOPICS)
    assert (
        one.evidence(other) == one.evidence(other) == (read_filter(other).bits, evidence(read_filter(other)))
    )
    assert one.evidence(described(2, [], filter=b"\xff" * 128)) == (0, 0.0)
