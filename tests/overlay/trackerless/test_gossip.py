"""Whom a node knows: what each question and answer leads to, and what is known after a restart."""

from __future__ import annotations

from random import Random

import pytest
from tests.overlay.harness import said

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Outbox
from linnet.overlay.trackerless.config import DAY, TrackerlessConfig
from linnet.overlay.trackerless.descriptor import check_descriptor, sign_descriptor
from linnet.overlay.trackerless.errands import QuestionDue
from linnet.overlay.trackerless.gossip import Gossip
from linnet.overlay.trackerless.messages import Alike, AskAlike, Descriptor, Pull, Pulled
from linnet.overlay.trackerless.tags import epoch_of, topic_keys
from linnet.sim.luck import SeededEntropy
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

NOW = 1_800_000_000.0
CONFIG = TrackerlessConfig()
US, A, B, C = (SigningKey(name.encode() * 32) for name in "uabc")
AT = ("tls://h:1",)
TOPIC = TopicId(bytes([1]) * 32)


def _peer(key: SigningKey) -> PeerId:
    return PeerId(key.public)


def _descriptor(key: SigningKey, now: float = NOW) -> Descriptor:
    return sign_descriptor(key, int(now * 1000), epoch_of(now), b"", 3000, 1, AT, int(now + DAY))


def _gossip(store: MemoryStore | None = None, links: dict[PeerId, None] | None = None) -> Gossip:
    return Gossip(
        US,
        CONFIG,
        (store or MemoryStore()).cells,
        Random(1),
        SeededEntropy(1, "us"),
        ("tls://us:1",),
        {} if links is None else links,
        check_descriptor,
        Outbox(),
    )


def _asking(kind: str, peer: PeerId, hints: tuple[str, ...] = AT) -> list[object]:
    """Asking somebody there is no link to: it is held, and waited for a while."""
    return [Hold(peer, hints, f"gossip {kind}"), SetTimer(9.0, QuestionDue(peer, kind))]


def _learned(gossip: Gossip, *keys: SigningKey) -> None:
    """The node knows these from an answer of A."""
    gossip.approach([Contact(_peer(A), AT)], NOW)
    gossip.learn(_peer(A), Pulled(1, (_descriptor(A), *map(_descriptor, keys))), NOW)


def test_it_begins_with_the_addresses_it_was_given_and_not_with_itself() -> None:
    gossip = _gossip()
    first = [Contact(_peer(US), AT), Contact(_peer(A), AT), Contact(_peer(B), ("tls://b:1",))]
    assert said(gossip.out, gossip.begin, first, NOW) == [
        *_asking("Pull", _peer(A)),
        *_asking("Pull", _peer(B), ("tls://b:1",)),
    ]
    assert said(gossip.out, gossip.begin, first, NOW) == [], "each is asked one thing at a time"


def test_an_answer_makes_peers_known_and_lets_the_answerer_go() -> None:
    gossip = _gossip()
    gossip.approach([Contact(_peer(A), AT)], NOW)
    told = said(gossip.out, gossip.learn, _peer(A), Pulled(1, (_descriptor(A), _descriptor(B))), NOW)
    assert told == [CancelTimer(QuestionDue(_peer(A), "Pull")), Release(_peer(A), "gossip Pull")]
    assert len(gossip.acquaintances) == 2
    assert gossip.hints(_peer(B)) == AT
    assert gossip.hints(_peer(C)) == ()


@pytest.mark.parametrize("message", [Pulled(1, ()), Alike(1, ())])
def test_an_answer_that_nobody_waits_for_is_named_and_not_used(message: Pulled | Alike) -> None:
    gossip = _gossip()
    (record,) = said(gossip.out, gossip.learn, _peer(A), message, NOW)
    assert isinstance(record, Record)
    assert (record.kind, record.peer, record.reason) == (Kind.REJECTED, _peer(A), Reason.STALE)
    assert len(gossip.acquaintances) == 0


def test_whoever_pulls_is_told_of_us_and_becomes_known() -> None:
    gossip = _gossip()
    (answer, *_) = said(gossip.out, gossip.answer_pull, _peer(A), Pull(7, _descriptor(A)), NOW)
    assert answer == Send(_peer(A), Pulled(7, (gossip.shown(NOW).descriptor,)))
    assert _peer(A) in gossip.acquaintances
    with pytest.raises(RemoteError, match="none but itself"):
        gossip.answer_pull(_peer(B), Pull(8, _descriptor(A)), NOW)


def test_questions_for_like_peers_are_answered_up_to_a_bound_in_each_round() -> None:
    gossip = _gossip()
    question = AskAlike(1, _descriptor(A))
    for _ in range(16):
        (answer,) = said(gossip.out, gossip.answer_ask_alike, _peer(A), question, (), NOW)
        assert isinstance(answer, Send)
        assert isinstance(answer.message, Alike)
    with pytest.raises(RemoteError) as caught:
        gossip.answer_ask_alike(_peer(A), question, (), NOW)
    assert caught.value.reason is Reason.TOO_MANY
    with pytest.raises(RemoteError, match="none but itself"):
        gossip.answer_ask_alike(_peer(B), question, (), NOW)
    gossip.round(NOW)
    assert said(gossip.out, gossip.answer_ask_alike, _peer(A), question, (), NOW)


def test_a_round_turns_to_the_sample_and_to_first_addresses_while_there_is_none() -> None:
    lonely = _gossip()
    assert said(lonely.out, lonely.round, NOW) == []
    lonely.approach([Contact(_peer(A), AT)], NOW)
    lonely.errands.end_question(_peer(A), "Pull")
    assert said(lonely.out, lonely.round, NOW) == _asking("Pull", _peer(A))
    gossip = _gossip()
    _learned(gossip, B)
    for _ in range(3):  # One that was named is offered with the round.
        asked = said(gossip.out, gossip.round, NOW)
    pulls = [each for each in asked if isinstance(each, Hold) and each.purpose == "gossip Pull"]
    assert len(pulls) <= 1
    assert set(gossip.sampling.view) <= {_peer(A), _peer(B)}
    assert gossip.sampling.view


def test_first_addresses_are_turned_to_once_in_thirty_rounds_though_others_are_known() -> None:
    """All others may be on our side of a network that was cut."""
    gossip = _gossip()
    gossip.approach([Contact(_peer(A), AT)], NOW)
    gossip.learn(_peer(A), Pulled(1, (_descriptor(B), _descriptor(C))), NOW)
    gossip.handle_silence(_peer(A), Pull(1, _descriptor(US)), NOW)
    asked: list[int] = []
    for number in range(1, 61):
        effects = said(gossip.out, gossip.round, NOW + number * 10.0)
        asked += [number for effect in effects if isinstance(effect, Hold) and effect.peer == _peer(A)]
        for peer in (_peer(A), _peer(B), _peer(C)):
            gossip.errands.handle_answer(peer, Pull)
            gossip.errands.handle_answer(peer, AskAlike)
    assert asked == [30, 60]


def test_whoever_broke_the_protocol_is_left_out() -> None:
    gossip = _gossip()
    _learned(gossip)
    gossip.sampling.meet(_descriptor(A), NOW)
    assert list(gossip.sampling.view) == [_peer(A)]
    gossip.note_offence(_peer(A), NOW)
    assert list(gossip.sampling.view) == []
    with pytest.raises(RemoteError) as caught:
        gossip.answer_pull(_peer(A), Pull(1, _descriptor(A)), NOW)
    assert caught.value.reason is Reason.BANNED


def test_a_restart_begins_with_who_was_known_and_after_a_day_with_where_they_were() -> None:
    store = MemoryStore()
    before = _gossip(store)
    before.sampling.meet(_descriptor(A), NOW)
    before.sampling.meet(_descriptor(B), NOW)
    before.remember(NOW)
    after = _gossip(store)
    assert said(after.out, after.begin, (), NOW + 3600) == []
    assert set(after.sampling.view) == {_peer(A), _peer(B)}
    late = _gossip(store)
    assert said(late.out, late.begin, (), NOW + 2 * DAY) == [
        *_asking("Pull", _peer(A)),
        *_asking("Pull", _peer(B)),
    ]
    assert late.sampling.view == ()
    assert said(late.out, late.round, NOW + 2 * DAY) == [], "they are being asked"


def test_who_is_known_is_written_down_after_the_first_hurried_rounds() -> None:
    store = MemoryStore()
    gossip = _gossip(store)
    gossip.sampling.meet(_descriptor(A), NOW)
    for _ in range(CONFIG.hurried):
        gossip.round(NOW)
    again = _gossip(store)
    again.begin((), NOW)
    assert again.sampling.view == (_peer(A),)


def test_a_filter_is_entered_in_the_account_once_over_restarts() -> None:
    store = MemoryStore()
    gossip = _gossip(store)
    gossip.own.topics({TOPIC: topic_keys(TOPIC)}, NOW)
    assert gossip.shown(NOW).descriptor.filter == b""
    later = NOW + CONFIG.release_delay
    shown = gossip.shown(later).descriptor
    assert shown.filter
    gossip.shown(later + 100)
    again = _gossip(store)
    again.own.topics({TOPIC: topic_keys(TOPIC)}, later + 200)
    assert again.shown(later + 300).descriptor.filter == shown.filter
    assert [(each.epoch, each.times, each.epsilon_milli) for each in again.budget.told().filters] == [
        (epoch_of(later), 1, 3000)
    ]


def test_on_a_local_network_no_filter_is_shown() -> None:
    gossip = _gossip()
    gossip.own.topics({TOPIC: topic_keys(TOPIC)}, NOW)
    later = NOW + CONFIG.release_delay
    gossip.local[_peer(A)] = Contact(_peer(A), ("tls://192.168.0.2:1",))
    assert gossip.face(_peer(A), later).filter == b""
    assert gossip.face(_peer(B), later).filter != b""
    assert gossip.hints(_peer(A)) == ("tls://192.168.0.2:1",)


def test_the_secret_of_noise_and_decoys_is_the_same_after_a_restart_and_another_at_each_node() -> None:
    store = MemoryStore()
    assert _gossip(store).key == _gossip(store).key
    gossips = [
        Gossip(
            US,
            CONFIG,
            MemoryStore().cells,
            Random(1),
            SeededEntropy(1, name),
            AT,
            {},
            check_descriptor,
            Outbox(),
        )
        for name in ("us", "them")
    ]
    assert gossips[0].key != gossips[1].key
