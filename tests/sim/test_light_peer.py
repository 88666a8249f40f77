"""A simulated node: what goes to its overlay, and what to its topics."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from tests.due import Due

from linnet.core.effects import Send, SetTimer
from linnet.core.ids import PeerId, TopicId
from linnet.core.inputs import LinkDown, Received, TimerFired
from linnet.core.reasons import Reason
from linnet.delivery.messages import Given, Want
from linnet.event.event import Event
from linnet.overlay.notices import NeighborDown, NeighborUp
from linnet.sim.clock import START
from linnet.sim.light_topic import HeadsDue, LightPeer, LightTopic, TellHeads, TopicSetting
from linnet.sim.seeded_random import seeded_identity
from linnet.sim.signature_cache import RememberingVerifier

TOPIC, OTHER = TopicId(b"t" * 32), TopicId(b"o" * 32)
B, C = PeerId(b"b" * 32), PeerId(b"c" * 32)


class Noting:
    """An overlay that answers as it was told."""

    def __init__(self, *answer: object) -> None:
        self.answer = answer
        self.seen: list[Any] = []

    def neighbors(self, topic: TopicId) -> tuple[PeerId, ...]:
        """See `OverlayMachine.neighbors`."""
        return (C,)

    def handle(self, event: Any, now: float) -> Sequence[Any]:  # noqa: ANN401 - as of a machine
        """See `OverlayMachine.handle`."""
        self.seen.append(event)
        return self.answer


def node(*answer: object, silent: bool = False) -> tuple[LightPeer, Noting, list[Event]]:
    identity = seeded_identity(1, "one", START)
    handed: list[Event] = []
    overlay = Noting(*answer)
    topic = LightTopic(
        TOPIC,
        identity,
        lambda sources, up: up,
        Random(1),
        TopicSetting(
            {(identity.author, identity.card.device): identity.card},
            RememberingVerifier(),
            lambda _, event, hops, now: handed.append(event),
        ),
    )
    peer = LightPeer(identity.peer, overlay, [TOPIC], {TOPIC: topic}.__getitem__, silent)
    return peer, overlay, handed


def test_notices_of_the_overlay_move_the_topics() -> None:
    up = NeighborUp(TOPIC, B)
    peer, overlay, handed = node(up, NeighborUp(OTHER, B))
    topic = peer.topic(TOPIC)
    assert topic is not None
    event, _ = topic.publish(b"one", START)
    effects = peer.handle(LinkDown(B, Reason.CRASHED), START)
    assert overlay.seen == [LinkDown(B, Reason.CRASHED)]
    assert effects == [up, NeighborUp(OTHER, B), Send(B, TellHeads(TOPIC, (event.id,), 1))]
    assert list(topic.flood.neighbors) == [C, B]
    overlay.answer = (NeighborDown(TOPIC, B), NeighborDown(OTHER, B))
    assert peer.handle(TimerFired(Due("round")), START) == overlay.answer
    assert list(topic.flood.neighbors) == [C]
    assert handed == [event]


def test_messages_and_timers_of_topics_do_not_reach_the_overlay() -> None:
    peer, overlay, _ = node()
    topic = peer.topic(TOPIC)
    assert topic is not None
    event, _ = topic.publish(b"one", START)
    unit = peer.handle(Received(B, Want(TOPIC, 3, (event.id,))), START)[0].message
    assert isinstance(unit, Given)
    assert (unit.request, len(unit.units), unit.unknown) == (3, 1, ())
    effects = peer.handle(TimerFired(HeadsDue(TOPIC)), START)
    assert [type(effect) for effect in effects] == [SetTimer, Send]
    assert peer.handle(TimerFired(HeadsDue(OTHER)), START) == ()
    assert peer.handle(Received(B, Want(OTHER, 3, ())), START) == ()
    assert overlay.seen == []


def test_a_topic_takes_no_room_until_something_is_said() -> None:
    up = NeighborUp(TOPIC, B)
    peer, _, _ = node(up)
    assert peer.handle(LinkDown(B, Reason.CRASHED), START) == (up,)
    assert peer.topics == {}
    assert peer.topic(OTHER) is None


def test_a_silent_one_sends_nothing_of_its_topics() -> None:
    peer, _, _ = node(silent=True)
    assert peer.handle(Received(B, Want(TOPIC, 3, ())), START) == []
