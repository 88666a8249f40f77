"""How long people stay online around what they send: five margins for each chat.

Margins are relative to the chat: evenly spaced on a logarithmic scale from one second to the longest
time between two messages (Schichtholz 2024, section 6.2; the lower end is read from its chat 1796).
"""

from __future__ import annotations

from math import isqrt

import numpy as np

from linnet.lab.relays.chat_arrays import ChatArrays

MARGINS = 5
SHORTEST = 1_000
"""Milliseconds of the first margin."""


def longest_pause(chat: ChatArrays) -> int:
    """The longest time between a message and the next, in milliseconds; 0 for a single message."""
    return int(np.diff(chat.ts).max(initial=0))


def chat_margins(longest: int) -> tuple[int, ...]:
    """Five margins in milliseconds, ascending, the last being the longest pause itself.

    Empty if the longest pause is a second or less: such a chat has no margins, is of no use to the
    study, and is to be counted. Of a pause below 1,004 ms there are no five different margins, and
    some repeat. Roots are taken of integers, so that every machine gives the same margins.
    """
    if longest <= SHORTEST:
        return ()
    steps = MARGINS - 1
    return tuple(_nearest_fourth_root(SHORTEST ** (steps - step) * longest**step) for step in range(MARGINS))


def _nearest_fourth_root(value: int) -> int:
    return (isqrt(isqrt(16 * value)) + 1) // 2
