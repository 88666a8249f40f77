"""What two members call a topic on their link, and that no more is remembered of it than is allowed."""

from __future__ import annotations

from linnet.core.ids import PeerId, TopicId
from linnet.overlay.gossip.topic_tags import PairNames, hint, topic_keys

A, B, C, D = (PeerId(bytes([at]) * 32) for at in (10, 20, 30, 40))
ONE, TWO = topic_keys(TopicId(bytes([1]) * 32)), topic_keys(TopicId(bytes([2]) * 32))


def named(remembered: int = 8) -> PairNames:
    names = PairNames(A, remembered)
    names.add_topic(ONE)
    names.add_topic(TWO)
    return names


def test_both_ends_call_a_topic_the_same_and_each_pair_calls_it_otherwise() -> None:
    names, theirs = named(), PairNames(B)
    theirs.add_topic(ONE)
    assert names.name_of(ONE.topic, B) == theirs.name_of(ONE.topic, A) == hint(ONE, A, B)
    assert len({names.name_of(keys.topic, peer) for keys in (ONE, TWO) for peer in (B, C)}) == 4
    assert names.find_topic(B, theirs.name_of(ONE.topic, A)) == ONE.topic
    assert names.find_topic(C, theirs.name_of(ONE.topic, A)) is None


def test_a_topic_that_was_left_has_no_name_any_more_even_if_it_was_remembered() -> None:
    names = named()
    called = names.name_of(ONE.topic, B)
    names.remove_topic(ONE.topic)
    assert names.find_topic(B, called) is None
    names.add_topic(ONE)
    assert names.find_topic(B, called) == ONE.topic
    names.remove_topic(TopicId(bytes(32)))


def test_of_so_many_peers_something_is_remembered_and_strange_names_take_no_room() -> None:
    names = named(remembered=2)
    called = names.name_of(ONE.topic, B)
    assert names.find_topic(C, b"anything") is None
    assert len(names) == 1
    names.name_of(ONE.topic, C)
    names.name_of(TWO.topic, D)
    assert len(names) == 2
    assert names.find_topic(B, called) == ONE.topic, "it is computed anew"
