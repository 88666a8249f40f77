"""What relays hold: how many events and bytes for how long.

A relay holds an event from its sending for the retention, or until the end of the chat, which is the time
of the last message. An event's bytes are its text, a byte for each character, and what any event of
this project has besides: signature, author, place in its chain (`python -m bench.sizes`: 311 bytes for a
single event with a body of 100).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linnet.lab.relays.chat_arrays import I64, ChatArrays

EVENT_OVERHEAD = 211
"""Bytes of an event besides its text."""
_HALF = 31


class Held(NamedTuple):
    """Sums over a chat, exact."""

    event_ms: int
    """Milliseconds, summed over all events."""
    byte_ms: int
    """Bytes times milliseconds; in large chats too big for 64 bits, so store it in seconds."""


def event_bytes(chat: ChatArrays) -> I64:
    """The size of each event."""
    return chat.chars.astype(np.int64) + EVENT_OVERHEAD


def held(chat: ChatArrays, retention: int | None = None) -> Held:
    """What is held with a retention in milliseconds, or with none."""
    kept = chat.ts[-1] - chat.ts
    if retention is not None:
        kept = np.minimum(kept, retention)
    return Held(exact_sum(kept), exact_sum(kept * event_bytes(chat)))


def exact_sum(values: I64) -> int:
    """The sum of values from 0, however large it gets."""
    low = values & ((1 << _HALF) - 1)
    return (int((values >> _HALF).sum()) << _HALF) + int(low.sum())
