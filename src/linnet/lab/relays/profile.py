"""What a chat is like, and whether the thesis would have run it.

Schichtholz 2024, section 6.2.4: of 5,956 chats those were run whose clock shows seconds, with at most 30
members, at least 30 messages, and an estimated run of at most three hours; 103 were left, of which
18 were picked by eye for a traffic that shows asynchronous periods. Picking by eye is left out here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linnet.lab.relays.chat_arrays import ChatIndex
from linnet.lab.relays.margins import longest_pause
from linnet.lab.relays.presence import periods_around

LONGEST_WAIT = 10_000
"""Milliseconds: a run never waits longer between two actions (section 6.1.2)."""


class Filters(NamedTuple):
    """Which chats are selected."""

    most_members: int = 30
    fewest_messages: int = 30
    longest_run_ms: int = 3 * 3_600_000


class Profile(NamedTuple):
    """A chat in numbers; times in milliseconds."""

    members: int
    messages: int
    chars: int
    duration: int
    median_pause: int
    """The lower median, so that it is an integer that occurs."""
    longest_pause: int
    estimate: int
    """How long a run would take whose pauses are cut."""


def profile(index: ChatIndex) -> Profile:
    """The profile of a chat."""
    chat = index.chat
    pauses = np.sort(np.diff(chat.ts))
    median = int(pauses[(len(pauses) - 1) // 2]) if len(pauses) else 0
    return Profile(
        members=chat.members,
        messages=len(chat.ts),
        chars=int(chat.chars.sum(dtype=np.int64)),
        duration=int(chat.ts[-1]),
        median_pause=median,
        longest_pause=longest_pause(chat),
        estimate=estimated_run(index, max(1, median)),
    )


def estimated_run(index: ChatIndex, margin: int) -> int:
    """Milliseconds that a run takes with this margin, if it waits at most ten seconds between actions."""
    presence = periods_around(index, margin)
    times = np.sort(np.concatenate((index.chat.ts, presence.start, presence.end)))
    return int(np.minimum(np.diff(times), LONGEST_WAIT).sum())


def steps(profile: Profile, seconds: bool, filters: Filters) -> tuple[bool, ...]:
    """Whether a chat passes the filters one by one, each after those before it."""
    tests = (
        seconds,
        profile.members <= filters.most_members,
        profile.estimate <= filters.longest_run_ms,
        profile.messages >= filters.fewest_messages,
    )
    return tuple(all(tests[: number + 1]) for number in range(len(tests)))
