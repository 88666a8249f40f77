"""Two who never have a link synchronise by files that somebody carries between them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import msgspec
import pytest

from linnet.core.effects import CancelTimer, Send, SetTimer
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.timers import Timer
from linnet.delivery.causal_barriers import RecoveryDue
from linnet.delivery.messages import CausalMessage
from linnet.event.event import Event
from linnet.sim.clock import START
from linnet.sim.light_topic import LightTopic, TellHeads, TopicSetting, references
from linnet.sim.seeded_random import seeded_identity
from linnet.sim.signature_cache import RememberingVerifier
from linnet.wire.codec import Codec
from linnet.wire.frame import FrameReader, frame

TOPIC = TopicId(b"t" * 32)
CODEC: Codec[CausalMessage] = Codec(CausalMessage)
A_DAY = 86_400.0


class Traveller:
    """One who has the topic, and a file of what it has to say to the other."""

    def __init__(self, name: str, file: Path) -> None:
        self.identity = seeded_identity(1, name, START)
        self.file = file
        self.had: dict[EventId, None] = {}
        self.timers: dict[Timer, float] = {}
        self.said: list[bytes] = []

    def enter(self, everyone: list[Traveller]) -> None:
        cards = {(each.identity.author, each.identity.card.device): each.identity.card for each in everyone}
        self.topic = LightTopic(
            TOPIC, self.identity, None, Random(1), TopicSetting(cards, RememberingVerifier(), self.hand)
        )

    def hand(self, peer: PeerId, event: Event, hops: int, now: float) -> None:
        assert event.id not in self.had
        assert all(ref in self.had for ref in references(event)), "a cause was handed over too late"
        self.had[event.id] = None

    def perform(self, effects: list[object], now: float) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                message = effect.message
                is_heads = isinstance(message, TellHeads)
                encoded = msgspec.msgpack.encode(message) if is_heads else CODEC.encode(message)
                self.said.append((b"h" if is_heads else b"m") + encoded)
            elif isinstance(effect, SetTimer):
                self.timers[effect.timer] = now + effect.delay
            elif isinstance(effect, CancelTimer):
                self.timers.pop(effect.timer, None)

    def write(self) -> int:
        """Put all that is to be said into the file."""
        self.file.write_bytes(b"".join(map(frame, self.said)))
        count, self.said = len(self.said), []
        return count

    def read(self, other: Traveller, now: float) -> None:
        """Take in what the other wrote; then whatever was due meanwhile."""
        for payload in FrameReader().feed(other.file.read_bytes()):
            message = (
                msgspec.msgpack.decode(payload[1:], type=TellHeads)
                if payload[:1] == b"h"
                else CODEC.decode(payload[1:])
            )
            self.perform([*self.topic.handle(other.identity.peer, message, now)], now)
        for timer in [timer for timer in self.timers if isinstance(timer, RecoveryDue)]:
            due = self.timers.pop(timer)
            self.perform([*self.topic.recover(max(now, due))], now)


@pytest.mark.parametrize(("common", "apart"), [(0, (40, 0)), (30, (12, 0)), (30, (25, 40)), (400, (3, 5))])
def test_what_either_said_apart_is_at_both_after_files_went_to_and_fro(
    tmp_path: Path, common: int, apart: tuple[int, int]
) -> None:
    ann, bob = both = [Traveller(name, tmp_path / name) for name in ("ann", "bob")]
    for each in both:
        each.enter(both)
    now = START
    # What both know: said by one, and put into the hands of the other.
    for _ in range(common):
        ann.topic.publish(b"common", now)
    ann.perform([*ann.topic.add_neighbor(bob.identity.peer)], now)
    bob.perform([*bob.topic.add_neighbor(ann.identity.peer)], now)
    carry(ann, bob, now)
    assert len(ann.had) == len(bob.had) == common
    for each, count in zip(both, apart, strict=True):
        for _ in range(count):
            each.topic.publish(b"apart", now)
    for each, other in ((ann, bob), (bob, ann)):
        each.topic.remove_neighbor(other.identity.peer, now)
        each.perform([*each.topic.add_neighbor(other.identity.peer)], now)
    journeys = carry(ann, bob, now)
    assert set(ann.had) == set(bob.had)
    assert len(ann.had) == common + sum(apart)
    assert journeys <= 12
    # Once more, and there is nothing to say but how far both are.
    for each, other in ((ann, bob), (bob, ann)):
        each.topic.remove_neighbor(other.identity.peer, now)
        each.perform([*each.topic.add_neighbor(other.identity.peer)], now)
    assert ann.write() == bob.write() == 1
    for each, other in ((ann, bob), (bob, ann)):
        each.read(other, now)
    assert ann.said == bob.said == []


def carry(ann: Traveller, bob: Traveller, now: float) -> int:
    """Files go there and back, a day each, until nobody has anything to say; returns how many went."""
    journeys = 0
    while ann.said or bob.said:
        for each, other in ((ann, bob), (bob, ann)):
            now += A_DAY
            each.write()
            journeys += 1
            other.read(each, now)
        assert journeys < 50
    return journeys
