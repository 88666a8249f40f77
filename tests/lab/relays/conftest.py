"""Small random chats with many ties, to hold the models against the definitions."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest

from linnet.lab.relays.chat_arrays import ChatArrays, ChatIndex, chat_arrays, index_chat
from linnet.lab.relays.presence import Presence, merge_periods, periods_around

CASES = 10_000 if os.environ.get("LINNET_SOAK") else 300
STEPS = np.array([0, 0, 1, 2, 3, 5, 8, 20, 60, 300])


def random_chat(luck: np.random.Generator) -> ChatArrays:
    """Up to 6 members and 40 messages, often at the same time, in bursts and pauses."""
    messages, members = int(luck.integers(1, 41)), int(luck.integers(2, 7))
    steps = luck.choice(STEPS[: luck.integers(2, len(STEPS) + 1)], messages)
    shares = luck.dirichlet(np.full(members, 0.7))
    return chat_arrays(
        np.cumsum(steps), luck.choice(members, messages, p=shares), luck.integers(0, 9, messages)
    )


def random_presence(luck: np.random.Generator, index: ChatIndex) -> Presence:
    """Any periods, and a little around each send."""
    count, longest = int(luck.integers(0, 30)), int(luck.integers(1, 200))
    start = luck.integers(0, int(index.chat.ts[-1]) + 50, count)
    member = np.concatenate((luck.integers(0, index.chat.members, count), index.user)).astype(np.int32)
    before = luck.integers(0, 3, len(index.ts))
    starts = np.concatenate((start, np.maximum(index.ts - before, 0)))
    ends = np.concatenate(
        (start + luck.integers(0, longest, count), index.ts + luck.integers(1, 4, len(index.ts)))
    )
    return merge_periods(member, starts, ends)


@pytest.fixture
def around_sends() -> Iterator[tuple[ChatIndex, Presence, int]]:
    """Chats, with the presence of a margin, and the margin."""

    def cases() -> Iterator[tuple[ChatIndex, Presence, int]]:
        for seed in range(CASES):
            luck = np.random.Generator(np.random.Philox(seed))
            index = index_chat(random_chat(luck))
            margin = int(luck.choice([1, 2, 3, 4, 7, 12, 30, 100, 400]))
            yield index, periods_around(index, margin), margin

    return cases()


@pytest.fixture
def at_any_time() -> Iterator[tuple[ChatIndex, Presence]]:
    """Chats, with a presence that has little to do with what is sent."""

    def cases() -> Iterator[tuple[ChatIndex, Presence]]:
        for seed in range(CASES):
            luck = np.random.Generator(np.random.Philox(seed))
            index = index_chat(random_chat(luck))
            yield index, random_presence(luck, index)

    return cases()
