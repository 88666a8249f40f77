"""Whom a node knows: what each question and answer leads to, and what is known after a restart."""

from __future__ import annotations

import pytest
from tests.overlay.gossip.gossiping import AT, NOW, OTHERS, US, described, peer_gossip
from tests.overlay.harness import said

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.overlay.gossip.config import DAY, TrackerlessConfig
from linnet.overlay.gossip.messages import Alike, AskAlike, Pull, Pulled
from linnet.overlay.gossip.peer_gossip import PeerGossip
from linnet.overlay.gossip.requests import QuestionDue
from linnet.overlay.gossip.topic_tags import epoch_of, topic_keys
from linnet.sim.seeded_random import SeededEntropy
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

CONFIG = TrackerlessConfig()
A, B, C = OTHERS[:3]
TOPIC = TopicId(bytes([1]) * 32)


def _peer(key: SigningKey) -> PeerId:
    return PeerId(key.public)


def _asking(kind: str, peer: PeerId, hints: tuple[str, ...] = AT) -> list[object]:
    """Asking somebody there is no link to: it is held, and waited for a while."""
    return [Hold(peer, hints, f"gossip {kind}"), SetTimer(9.0, QuestionDue(peer, kind))]


def _learned(gossip: PeerGossip, *keys: SigningKey) -> None:
    """The node knows these from an answer of A."""
    gossip.ask_contacts([Contact(_peer(A), AT)], NOW)
    gossip.handle_answer(_peer(A), Pulled(1, (described(A), *map(described, keys))), NOW)


def test_it_begins_with_the_addresses_it_was_given_and_not_with_itself() -> None:
    gossip = peer_gossip()
    first = [Contact(_peer(US), AT), Contact(_peer(A), AT), Contact(_peer(B), ("tls://b:1",))]
    assert said(gossip.out, gossip.begin, first, NOW) == [
        *_asking("Pull", _peer(A)),
        *_asking("Pull", _peer(B), ("tls://b:1",)),
    ]
    assert said(gossip.out, gossip.begin, first, NOW) == [], "each is asked one thing at a time"


def test_an_answer_makes_peers_known_and_lets_the_answerer_go() -> None:
    gossip = peer_gossip()
    gossip.ask_contacts([Contact(_peer(A), AT)], NOW)
    told = said(gossip.out, gossip.handle_answer, _peer(A), Pulled(1, (described(A), described(B))), NOW)
    assert told == [CancelTimer(QuestionDue(_peer(A), "Pull")), Release(_peer(A), "gossip Pull")]
    assert len(gossip.known) == 2
    assert gossip.hints_of(_peer(B)) == AT
    assert gossip.hints_of(_peer(C)) == ()


@pytest.mark.parametrize("message", [Pulled(1, ()), Alike(1, ())])
def test_an_answer_that_nobody_waits_for_is_named_and_not_used(message: Pulled | Alike) -> None:
    gossip = peer_gossip()
    (record,) = said(gossip.out, gossip.handle_answer, _peer(A), message, NOW)
    assert isinstance(record, Record)
    assert (record.kind, record.peer, record.reason) == (Kind.REJECTED, _peer(A), Reason.STALE)
    assert len(gossip.known) == 0


def test_whoever_pulls_is_told_of_us_and_becomes_known() -> None:
    gossip = peer_gossip()
    (answer, *_) = said(gossip.out, gossip.answer_pull, _peer(A), Pull(7, described(A)), NOW)
    assert answer == Send(_peer(A), Pulled(7, (gossip.own_profile(NOW).descriptor,)))
    assert _peer(A) in gossip.known
    with pytest.raises(RemoteError, match="none but itself"):
        gossip.answer_pull(_peer(B), Pull(8, described(A)), NOW)


def test_questions_for_like_peers_are_answered_up_to_a_bound_in_each_round() -> None:
    gossip = peer_gossip()
    question = AskAlike(1, described(A))
    for _ in range(16):
        (answer,) = said(gossip.out, gossip.answer_ask_alike, _peer(A), question, (), NOW)
        assert isinstance(answer, Send)
        assert isinstance(answer.message, Alike)
    with pytest.raises(RemoteError) as caught:
        gossip.answer_ask_alike(_peer(A), question, (), NOW)
    assert caught.value.reason is Reason.TOO_MANY
    with pytest.raises(RemoteError, match="none but itself"):
        gossip.answer_ask_alike(_peer(B), question, (), NOW)
    gossip.begin_round(NOW)
    assert said(gossip.out, gossip.answer_ask_alike, _peer(A), question, (), NOW)


def test_a_round_turns_to_the_sample_and_to_first_addresses_while_there_is_none() -> None:
    lonely = peer_gossip()
    assert said(lonely.out, lonely.begin_round, NOW) == []
    lonely.ask_contacts([Contact(_peer(A), AT)], NOW)
    lonely.requests.end_question(_peer(A), "Pull")
    assert said(lonely.out, lonely.begin_round, NOW) == _asking("Pull", _peer(A))
    gossip = peer_gossip()
    _learned(gossip, B)
    for _ in range(3):  # One that was named is offered with the round.
        asked = said(gossip.out, gossip.begin_round, NOW)
    pulls = [each for each in asked if isinstance(each, Hold) and each.purpose == "gossip Pull"]
    assert len(pulls) <= 1
    assert set(gossip.sampling.view) <= {_peer(A), _peer(B)}
    assert gossip.sampling.view


def test_first_addresses_are_turned_to_once_in_thirty_rounds_though_others_are_known() -> None:
    """All others may be on our side of a network that was cut."""
    gossip = peer_gossip()
    gossip.ask_contacts([Contact(_peer(A), AT)], NOW)
    gossip.handle_answer(_peer(A), Pulled(1, (described(B), described(C))), NOW)
    gossip.handle_silence(_peer(A), Pull(1, described(US)), NOW)
    asked: list[int] = []
    for number in range(1, 61):
        effects = said(gossip.out, gossip.begin_round, NOW + number * 10.0)
        asked += [number for effect in effects if isinstance(effect, Hold) and effect.peer == _peer(A)]
        for peer in (_peer(A), _peer(B), _peer(C)):
            gossip.requests.handle_answer(peer, Pull)
            gossip.requests.handle_answer(peer, AskAlike)
    assert asked == [30, 60]


def test_whoever_broke_the_protocol_is_left_out() -> None:
    gossip = peer_gossip()
    _learned(gossip)
    gossip.sampling.add_descriptor(described(A), NOW)
    assert list(gossip.sampling.view) == [_peer(A)]
    gossip.note_offence(_peer(A), NOW)
    assert list(gossip.sampling.view) == []
    with pytest.raises(RemoteError) as caught:
        gossip.answer_pull(_peer(A), Pull(1, described(A)), NOW)
    assert caught.value.reason is Reason.BANNED


def test_a_restart_begins_with_who_was_known_and_after_a_day_with_where_they_were() -> None:
    store = MemoryStore()
    before = peer_gossip(store=store)
    before.sampling.add_descriptor(described(A), NOW)
    before.sampling.add_descriptor(described(B), NOW)
    before.save_peers(NOW)
    after = peer_gossip(store=store)
    assert said(after.out, after.begin, (), NOW + 3600) == []
    assert set(after.sampling.view) == {_peer(A), _peer(B)}
    late = peer_gossip(store=store)
    assert said(late.out, late.begin, (), NOW + 2 * DAY) == [
        *_asking("Pull", _peer(A)),
        *_asking("Pull", _peer(B)),
    ]
    assert late.sampling.view == ()
    assert said(late.out, late.begin_round, NOW + 2 * DAY) == [], "they are being asked"


def test_who_is_known_is_written_down_after_the_first_hurried_rounds() -> None:
    store = MemoryStore()
    gossip = peer_gossip(store=store)
    gossip.sampling.add_descriptor(described(A), NOW)
    for _ in range(CONFIG.hurried):
        gossip.begin_round(NOW)
    again = peer_gossip(store=store)
    again.begin((), NOW)
    assert again.sampling.view == (_peer(A),)


def test_a_filter_is_entered_in_the_account_once_over_restarts() -> None:
    store = MemoryStore()
    gossip = peer_gossip(store=store)
    gossip.own.set_topics({TOPIC: topic_keys(TOPIC)}, NOW)
    assert gossip.own_profile(NOW).descriptor.filter == b""
    later = NOW + CONFIG.release_delay
    shown = gossip.own_profile(later).descriptor
    assert shown.filter
    gossip.own_profile(later + 100)
    again = peer_gossip(store=store)
    again.own.set_topics({TOPIC: topic_keys(TOPIC)}, later + 200)
    assert again.own_profile(later + 300).descriptor.filter == shown.filter
    assert [(each.epoch, each.times, each.epsilon_milli) for each in again.budget.report().filters] == [
        (epoch_of(later), 1, 3000)
    ]


def test_on_a_local_network_no_filter_is_shown() -> None:
    gossip = peer_gossip()
    gossip.own.set_topics({TOPIC: topic_keys(TOPIC)}, NOW)
    later = NOW + CONFIG.release_delay
    gossip.local[_peer(A)] = Contact(_peer(A), ("tls://192.168.0.2:1",))
    assert gossip.descriptor_for(_peer(A), later).filter == b""
    assert gossip.descriptor_for(_peer(B), later).filter != b""
    assert gossip.hints_of(_peer(A)) == ("tls://192.168.0.2:1",)


def test_the_secret_of_noise_and_decoys_is_the_same_after_a_restart_and_another_at_each_node() -> None:
    store = MemoryStore()
    assert peer_gossip(store=store).key == peer_gossip(store=store).key
    gossips = [peer_gossip(entropy=SeededEntropy(1, name)) for name in ("us", "them")]
    assert gossips[0].key != gossips[1].key


def _failing(gossip: PeerGossip, *peers: PeerId) -> None:
    """These were not up yet: they did not answer twice."""
    for peer in peers:
        for _ in range(2):
            gossip.handle_silence(peer, Pull(1, described(US)), NOW)


def test_a_link_from_a_peer_that_rests_brings_it_back_into_the_sample_at_once() -> None:
    gossip = peer_gossip()
    gossip.sampling.add_descriptor(described(A), NOW)
    _failing(gossip, _peer(A))
    assert not gossip.sampling.view
    gossip.handle_link_up(_peer(A), NOW + 1.0)
    assert list(gossip.sampling.view) == [_peer(A)]


def test_a_peer_that_rests_and_asks_us_is_in_the_sample_again_though_it_introduced_itself_before() -> None:
    gossip = peer_gossip()
    gossip.answer_pull(_peer(A), Pull(1, described(A)), NOW)
    assert list(gossip.sampling.view) == [_peer(A)]
    _failing(gossip, _peer(A))
    assert not gossip.sampling.view
    gossip.answer_pull(_peer(A), Pull(2, described(A)), NOW + 1.0)
    assert list(gossip.sampling.view) == [_peer(A)]


def test_while_the_sample_is_empty_all_who_are_known_are_tried_in_turn() -> None:
    gossip = peer_gossip()
    for key in (A, B):
        gossip.sampling.add_descriptor(described(key), NOW)
    _failing(gossip, _peer(A), _peer(B))
    asked: list[PeerId] = []
    for number in range(1, 5):
        effects = said(gossip.out, gossip.begin_round, NOW + number)
        asked += [each.peer for each in effects if isinstance(each, Hold) and each.purpose == "gossip Pull"]
        for peer in (_peer(A), _peer(B)):
            gossip.requests.end_question(peer, "Pull")
    assert set(asked) == {_peer(A), _peer(B)}
    assert asked[:2] != asked[:1] * 2, "in turn"


def test_nodes_that_stop_while_the_others_rest_still_know_them_after_the_restart() -> None:
    store = MemoryStore()
    gossip = peer_gossip(store=store)
    for key in (A, B):
        gossip.sampling.add_descriptor(described(key), NOW)
    _failing(gossip, _peer(A), _peer(B))
    gossip.save_peers(NOW)
    again = peer_gossip(store=store)
    again.begin((), NOW)
    assert set(again.sampling.view) == {_peer(A), _peer(B)}


def test_it_says_since_when_the_sample_is_empty() -> None:
    gossip = peer_gossip()
    gossip.begin_round(NOW)
    assert gossip.alone_since == NOW
    gossip.sampling.add_descriptor(described(A), NOW)
    gossip.begin_round(NOW + 1.0)
    assert gossip.alone_since is None
    _failing(gossip, _peer(A))
    gossip.begin_round(NOW + 2.0)
    gossip.begin_round(NOW + 3.0)
    assert gossip.alone_since == NOW + 2.0
