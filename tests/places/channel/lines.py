"""State lines for tests: what a voice would say, with right deltas and hashes."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from linnet.core.ids import TopicId
from linnet.places.channel.packet import Modifier
from linnet.places.channel.state_order import StateOrder, Step
from linnet.store.memory import MemoryStore

PLACE = TopicId(b"p" * 32)
NAMES = ("_a", "_a_b", "_b", "_list_x", "_amount")
VALUES = (b"", b"1", b"22", b"|x", b"|x|y")

seeds = st.integers(0, 2**32 - 1)


def fresh() -> StateOrder:
    """Somebody who knows nothing yet."""
    return StateOrder(PLACE, MemoryStore().cells)


def offer(order: StateOrder, step: Step) -> list[object]:
    """The same message as it comes to somebody."""
    return list(order.offered(step.message, step.delta, step.modifiers, step.hash))


def delta_for(order: StateOrder, message: int, reset: bool = False) -> int:
    """How far back the change of state before is, as a voice says; 0: there is none, or it is void."""
    return 0 if reset or not order.applied else message - order.applied


def line(luck: Random, length: int, order: StateOrder | None = None, after: int = 0) -> list[Step]:
    """What a voice says behind a message; some of it begins anew, some carries the hash."""
    voice = order or fresh()
    steps = []
    message = after
    for _ in range(length):
        message += luck.randint(1, 4)
        modifiers = tuple(
            Modifier(luck.choice("==+-"), luck.choice(NAMES), luck.choice(VALUES))
            for _ in range(luck.randint(0, 3))
        )
        reset = luck.random() < 0.1
        sha = voice.digest_with(modifiers, reset) if luck.random() < 0.3 else None
        steps.append(Step(message, delta_for(voice, message, reset), modifiers, sha))
        voice.offered(message, steps[-1].delta, modifiers, sha)
    return steps
