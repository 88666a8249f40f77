"""Two members of a topic become neighbours when both say so, and nobody else does."""

from __future__ import annotations

from linnet.core.effects import Hold, Release, Send
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.overlay.notices import NeighborDown, NeighborUp
from linnet.overlay.trackerless.beside import BesideEffect, BesideUs
from linnet.overlay.trackerless.messages import Beside
from linnet.overlay.trackerless.tags import hint, proof, topic_keys
from linnet.trace.records import Record

TOPIC = TopicId(bytes([1]) * 32)
OTHER = TopicId(bytes([2]) * 32)
A, B, C = (PeerId(bytes([at]) * 32) for at in (10, 20, 30))
KEYS = topic_keys(TOPIC)
AT = ("tls://h:1",)
PURPOSE = f"ring {TOPIC.hex()[:16]}"


def _beside(sender: PeerId, to: PeerId, is_open: bool = True, keeps: bool = False) -> Beside:
    return Beside(hint(KEYS, sender, to), 5, proof(KEYS, sender, 5), is_open, keeps)


def _without_records(effects: list[BesideEffect]) -> list[BesideEffect]:
    return [effect for effect in effects if not isinstance(effect, Record)]


def test_whoever_is_wanted_is_held_told_and_a_neighbour_once_it_says_so_too() -> None:
    links: dict[PeerId, None] = {}
    ours = BesideUs(A, links)
    assert ours.open(KEYS, False, 5) == []
    assert ours.want(TOPIC, {B: AT}, 5) == [Hold(B, AT, PURPOSE)]
    links[B] = None
    assert ours.linked(B, 5) == [Send(B, _beside(A, B))]
    assert ours.neighbors(TOPIC) == ()
    assert _without_records(ours.heard(B, _beside(B, A, keeps=True), 5)) == [NeighborUp(TOPIC, B)]
    assert (ours.neighbors(TOPIC), ours.keepers(TOPIC), ours.held()) == ((B,), (B,), {B: 1})


def test_whoever_wants_us_is_answered_and_let_go_when_it_wants_no_more() -> None:
    ours = BesideUs(A, {B: None})
    ours.open(KEYS, True, 5)
    told = _beside(A, B, keeps=True)
    assert _without_records(ours.heard(B, _beside(B, A), 5)) == [Send(B, told), NeighborUp(TOPIC, B)]
    assert _without_records(ours.heard(B, _beside(B, A, is_open=False), 5)) == [
        NeighborDown(TOPIC, B),
        Send(B, _beside(A, B, is_open=False, keeps=True)),
    ]
    assert ours.neighbors(TOPIC) == ()


def test_a_link_that_goes_takes_the_neighbour_with_it_and_brings_it_back() -> None:
    links = {B: None}
    ours = BesideUs(A, links)
    ours.open(KEYS, False, 5)
    ours.want(TOPIC, {B: AT}, 5)
    ours.heard(B, _beside(B, A), 5)
    del links[B]
    assert _without_records(ours.lost(B)) == [NeighborDown(TOPIC, B)]
    links[B] = None
    assert ours.linked(B, 5) == [Send(B, _beside(A, B))]


def test_who_is_wanted_no_more_is_told_and_released() -> None:
    ours = BesideUs(A, {B: None})
    ours.open(KEYS, False, 5)
    ours.want(TOPIC, {B: AT}, 5)
    ours.heard(B, _beside(B, A), 5)
    assert _without_records(ours.want(TOPIC, {C: AT}, 5)) == [
        Send(B, _beside(A, B, is_open=False)),
        NeighborDown(TOPIC, B),
        Release(B, PURPOSE),
        Hold(C, AT, PURPOSE),
    ]
    assert _without_records(ours.close(TOPIC, 5)) == [Release(C, PURPOSE)]
    assert ours.neighbors(TOPIC) == ()


def test_a_hint_of_another_topic_or_a_wrong_proof_is_named_and_changes_nothing() -> None:
    ours = BesideUs(A, {B: None})
    ours.open(KEYS, False, 5)
    strange = Beside(hint(topic_keys(OTHER), A, B), 5, proof(topic_keys(OTHER), B, 5), True)
    forged = Beside(hint(KEYS, A, B), 5, proof(KEYS, C, 5), True)
    old = Beside(hint(KEYS, A, B), 3, proof(KEYS, B, 3), True)
    for message, reason in (
        (strange, Reason.NOT_JOINED),
        (forged, Reason.NOT_IN_TOPIC),
        (old, Reason.NOT_IN_TOPIC),
    ):
        (record,) = ours.heard(B, message, 5)
        assert isinstance(record, Record)
        assert record.reason is reason
    assert ours.neighbors(TOPIC) == ()


def test_only_so_many_may_choose_us() -> None:
    ours = BesideUs(A, {})
    ours.open(KEYS, False, 5)
    many = [PeerId(bytes([100 + at]) * 32) for at in range(17)]
    for peer in many:
        effects = ours.heard(peer, _beside(peer, A), 5)
    assert len(ours.neighbors(TOPIC)) == 16
    refusal = effects[0]
    assert isinstance(refusal, Record)
    assert refusal.reason is Reason.TOO_MANY


def test_neighbours_are_told_when_the_topic_is_kept_from_now_on() -> None:
    ours = BesideUs(A, {B: None})
    ours.open(KEYS, False, 5)
    ours.want(TOPIC, {B: AT}, 5)
    assert ours.open(KEYS, True, 5) == [Send(B, _beside(A, B, keeps=True))]
    assert ours.open(KEYS, True, 5) == []
