"""Real presence: members are online when phones were, in traces of a week that are repeated.

Nobody knows when the people of a chat were online. Here each member gets the trace of one phone, and is
online besides for a second before and after each of its own messages: who sends is online.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from linnet.lab.errors import LabError
from linnet.lab.relays.chat_arrays import I64, ChatIndex
from linnet.lab.relays.presence import Presence, merge_periods

AROUND_SENDS = 1_000
"""Milliseconds online before and after each own message."""


class PhoneTrace(NamedTuple):
    """When one phone was online in one week: [start, end) in milliseconds since the start of the trace."""

    start: I64
    end: I64
    length: int
    """Milliseconds of the whole trace; after them it begins again."""


def phone_presence(index: ChatIndex, traces: Sequence[PhoneTrace], seed: int, phase: int = 0) -> Presence:
    """Give each member a trace, drawn by seed and number of the member, from the start of the chat.

    `phase` is where in the traces the chat begins, in milliseconds. Sessions go on for one trace after the
    last message, so that this too has its chance to be delivered.
    """
    _check(traces)
    end = int(index.chat.ts[-1])
    members, starts, ends = [index.user], [np.maximum(index.ts - AROUND_SENDS, 0)], [index.ts + AROUND_SENDS]
    for member in range(index.chat.members):
        trace = traces[drawn(seed, member, len(traces))]
        start, stop = _repeated(trace, phase % trace.length, end + trace.length)
        members.append(np.full(len(start), member, dtype=np.int32))
        starts.append(start)
        ends.append(stop)
    return merge_periods(np.concatenate(members), np.concatenate(starts), np.concatenate(ends))


def drawn(seed: int, member: int, traces: int) -> int:
    """Which of so many traces a member gets."""
    luck = np.random.Generator(np.random.Philox(np.random.SeedSequence((seed, member))))
    return int(luck.integers(traces))


def _repeated(trace: PhoneTrace, phase: int, until: int) -> tuple[I64, I64]:
    """The sessions of a trace, again and again until a time, the first ones cut at the start of the chat."""
    turns = np.arange((until + phase) // trace.length + 1, dtype=np.int64)[:, None] * trace.length - phase
    start, end = (turns + trace.start).reshape(-1), (turns + trace.end).reshape(-1)
    kept = (end > 0) & (start < until)
    return np.maximum(start[kept], 0), np.minimum(end[kept], until)


def _check(traces: Sequence[PhoneTrace]) -> None:
    if not traces:
        raise LabError("there are no traces of phones; ingest some, or use margins for presence")
    for number, trace in enumerate(traces):
        start, end, length = trace
        if len(start) != len(end) or ((start < 0) | (start >= end) | (end > length)).any():
            raise LabError(f"trace {number} has a session that is empty or not within its {length} ms")
