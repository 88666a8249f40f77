"""Which proxies a stream is asked of."""

from __future__ import annotations

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from linnet.core.ids import PeerId, TopicId
from linnet.edge.edge_client import allot_proxies, order_proxies

PROXIES = tuple(PeerId(sha256(b"proxy %d" % number).digest()) for number in range(4))
TOPICS = [TopicId(sha256(b"topic %d" % number).digest()) for number in range(400)]


def test_streams_are_shared_out_evenly() -> None:
    shares = [sum(peer in allot_proxies(topic, PROXIES, 1) for topic in TOPICS) for peer in PROXIES]
    assert sum(shares) == len(TOPICS)
    assert 70 <= min(shares) <= max(shares) <= 130


def test_none_or_as_many_as_there_are_means_all() -> None:
    for each in (0, 4, 8):
        assert allot_proxies(TOPICS[0], PROXIES, each) == PROXIES
    assert allot_proxies(TOPICS[0], (), 2) == ()


@given(st.sampled_from(TOPICS), st.integers(1, 3), st.permutations(PROXIES), st.sampled_from(PROXIES))
def test_one_that_goes_hands_on_its_own_streams_alone(
    topic: TopicId, each: int, proxies: list[PeerId], gone: PeerId
) -> None:
    before = allot_proxies(topic, proxies, each)
    after = allot_proxies(topic, [peer for peer in proxies if peer != gone], each)
    assert len(before) == len(after) == each
    assert [peer for peer in before if peer != gone] == [peer for peer in after if peer in before]
    if gone not in before:
        assert after == before


@given(st.sampled_from(TOPICS), st.permutations(PROXIES))
def test_the_order_in_which_proxies_are_named_does_not_matter(topic: TopicId, proxies: list[PeerId]) -> None:
    assert order_proxies(topic, proxies) == order_proxies(topic, PROXIES)
    assert set(allot_proxies(topic, proxies, 2)) == set(allot_proxies(topic, PROXIES, 2))
