"""A stream over a ring: what is new goes where the overlay says, and what is forged goes nowhere."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from tests.delivery.voices import asked
from tests.streams.stage import NOW
from tests.streams.test_stream import A, B, Scene

from linnet.core.effects import Send
from linnet.core.ids import PeerId
from linnet.delivery.messages import Data


def test_a_forged_event_is_forwarded_to_nobody_and_nobody_is_even_chosen() -> None:
    scene = Scene()
    routed: list[tuple[PeerId, ...]] = []

    def routing(sources: tuple[PeerId, ...], up: Sequence[PeerId]) -> Sequence[PeerId]:
        routed.append(sources)
        return [peer for peer in up if peer not in sources]

    scene.stream.flood.route(routing)
    unit = scene.ann.say(b"x")
    forged = msgspec.structs.replace(unit.unit, sig=b"x" * 64)
    data = Data(forged, 1, 0, 0, scene.ann.identity.card)
    effects = asked(scene.stream.out, scene.stream.handle_data, A, data, NOW)
    assert [effect for effect in effects if isinstance(effect, Send)] == []
    assert routed == []
    real = [effect.peer for effect in scene.hear(unit) if isinstance(effect, Send)]
    assert real == [B]
    assert routed == [(A,)]
