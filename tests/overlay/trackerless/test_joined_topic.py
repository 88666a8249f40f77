"""Contacts that were named with a topic are turned to until they are known as members, whoever else is."""

from __future__ import annotations

from linnet.core.ids import PeerId, TopicId
from linnet.overlay.trackerless.joined_topic import JoinedTopic
from linnet.overlay.trackerless.tags import topic_keys

PEERS = [PeerId(bytes([number]) * 32) for number in range(10)]
HINTS = {peer: (f"tls://host{number}:1",) for number, peer in enumerate(PEERS)}


def joined(count: int) -> JoinedTopic:
    keys = topic_keys(TopicId(b"t" * 32), None)
    return JoinedTopic(keys, False, {peer: HINTS[peer] for peer in PEERS[:count]})


def test_several_are_tried_at_once_while_no_member_is_known() -> None:
    assert list(joined(10).first_contacts()) == PEERS[:8]
    assert joined(10).tried((), False, 0) == {peer: HINTS[peer] for peer in PEERS[:8]}


def test_one_at_a_time_is_tried_in_turn_once_members_are_known() -> None:
    topic = joined(3)
    tried = [topic.tried((PEERS[1], PEERS[9]), True, turn) for turn in range(3)]
    assert tried == [{PEERS[0]: HINTS[PEERS[0]]}, {PEERS[2]: HINTS[PEERS[2]]}, {PEERS[0]: HINTS[PEERS[0]]}]


def test_who_is_a_member_is_not_tried_any_more() -> None:
    assert joined(2).tried(PEERS, True, 5) == {}
    assert joined(0).tried((), False, 5) == {}


def test_neighbours_are_chosen_anew_in_turn_while_someone_waits_for_it() -> None:
    assert joined(1).is_unsettled
    topic = joined(0)
    assert not topic.is_unsettled
    topic.uncovered = 2
    assert topic.is_unsettled
