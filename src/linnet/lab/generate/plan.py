"""The plan of a set of chats: what each is like, before a message is drawn.

Chats begin on a random minute of 2010. No chat lasts more than ten years, about as far as an export of
WhatsApp could reach back when the data were collected; how this is kept is said in
`linnet.lab.generate.conversation`.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from linnet.lab.errors import LabError
from linnet.lab.generate import facts
from linnet.lab.generate.luck import Luck
from linnet.lab.generate.shapes import group_sizes, message_counts, weights

MOST_CHATS = 99_999
"""As many as have a name of five digits."""

START_MS = 1_262_304_000_000
"""2010-01-01T00:00:00Z, in Unix milliseconds."""

LONGEST_S = 3_652 * facts.DAY
"""Seconds from the first to the last message of a chat at most: ten years."""

_MINUTES_OF_A_YEAR = 365 * 1440
_MINUTE_MS = 60_000

TASK_MESSAGES = 1_200_000
"""About so many messages are one task and one file, whatever the number of cores."""


class Granularity(StrEnum):
    """In what times are given."""

    PUBLISHED = "published"
    """27 % of chats in seconds, the others in minutes."""
    SECONDS = "s"
    """All chats in seconds."""


class ChatPlan(NamedTuple):
    """One chat."""

    number: int
    """From 1."""
    members: int
    messages: int
    granularity: str
    """``s`` or ``min``."""
    start_ms: int

    @property
    def name(self) -> str:
        """As it stands in tables."""
        return f"c{self.number:05d}"


def plan_chats(chats: int, messages: int, granularity: Granularity, seed: int) -> list[ChatPlan]:
    """So many chats with exactly so many messages in all."""
    if not 1 <= chats <= MOST_CHATS:
        raise LabError(f"--chats {chats}: from 1 to {MOST_CHATS:,}")
    luck = Luck(seed, 0)
    sizes = np.array(group_sizes(chats))[luck.order(chats)].tolist()
    shares = np.array(weights(chats))[luck.order(chats)].tolist()
    finer = set(luck.order(chats)[: _in_seconds(chats, granularity)].tolist())
    starts = (luck.words(chats) % np.uint64(_MINUTES_OF_A_YEAR)).astype(np.int64) * _MINUTE_MS + START_MS
    counts = message_counts(messages, sizes, shares)
    return [
        ChatPlan(n + 1, sizes[n], counts[n], "s" if n in finer else "min", int(starts[n]))
        for n in range(chats)
    ]


def _in_seconds(chats: int, granularity: Granularity) -> int:
    if granularity is Granularity.SECONDS:
        return chats
    return round(chats * facts.IN_SECONDS / facts.CHATS)


def split_tasks(plans: Sequence[ChatPlan], messages: int = TASK_MESSAGES) -> list[list[ChatPlan]]:
    """Even tasks of about so many messages: the longest chat first, each to the task that has the least.

    Within a task chats are in the order of their numbers. No task is empty.
    """
    count = min(len(plans), -(-sum(plan.messages for plan in plans) // messages))
    tasks: list[list[ChatPlan]] = [[] for _ in range(count)]
    loads = [(0, n) for n in range(count)]
    for plan in sorted(plans, key=lambda plan: (-plan.messages, plan.number)):
        load, n = heapq.heappop(loads)
        tasks[n].append(plan)
        heapq.heappush(loads, (load + plan.messages, n))
    return [sorted(task) for task in tasks]
