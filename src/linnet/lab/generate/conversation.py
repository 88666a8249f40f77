"""The messages of one chat, as arrays: when, by whom, of what kind, how long.

Three things are ours and not the model's:

- Everybody writes at least once, so that the members of a chat can be counted in its messages.
- Times are sums of pauses in whole seconds, or whole minutes. It is the *pause* that is cut to minutes, not
  the instant, so that the published shares (69 % within the same minute) hold for these chats too, which
  are three quarters of all. Cutting instants would leave 51 % within the same minute.
- A chat that would last longer than ten years has its pauses of more than two minutes drawn in, all
  in the same proportion and never below two minutes, so that it lasts as long as it may. The shares of
  pauses under 60 s and 120 s stay as they are. A chat of 142,000 messages needs ten years on average.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linnet.lab.generate.laws import SLOTS, authors, char_counts, next_kinds, pause_parts, pause_seconds
from linnet.lab.generate.luck import Bits16, Luck
from linnet.lab.generate.plan import LONGEST_S, ChatPlan

_SHORT = 120
_MINUTE = 60


class Conversation(NamedTuple):
    """Messages in order of time; a value of each array belongs to each."""

    ts: NDArray[np.int64]
    """Unix milliseconds."""
    author: NDArray[np.uint8]
    """The rank of who wrote it, from 0."""
    kind: NDArray[np.uint8]
    """Index in `facts.KINDS`."""
    chars: NDArray[np.int32]
    """Characters of a text; 0 for all else."""


def converse(plan: ChatPlan, seed: int) -> Conversation:
    """All messages of a chat, by the seed and its number alone."""
    luck = Luck(seed, plan.number)
    count = plan.messages
    pauses = draw_pauses(luck.halves(count - 1), luck.halves(count - 1))
    pauses = shortened(pauses, LONGEST_S)
    if plan.granularity == "min":
        pauses -= pauses % _MINUTE
    ts = np.empty(count, dtype=np.int64)
    ts[0] = 0
    np.cumsum(pauses, out=ts[1:])
    ts *= 1000
    ts += plan.start_ms
    kind = chain(luck.halves(count))
    chars = np.where(kind == 0, char_counts()[luck.halves(count)], np.int32(0))
    author = everybody(authors(plan.members)[luck.halves(count)], plan.members, luck)
    return Conversation(ts, author, kind, chars)


def draw_pauses(parts: Bits16, places: Bits16) -> NDArray[np.int64]:
    """Pauses in seconds: one number says which part of the mixture, the other which pause of it."""
    slots = pause_parts()[parts].astype(np.int32)
    slots *= SLOTS
    slots += places
    return pause_seconds()[slots].astype(np.int64)


def shortened(pauses: NDArray[np.int64], longest: int) -> NDArray[np.int64]:
    """The pauses, those above two minutes drawn in so that the sum is at most `longest`.

    In integers throughout. If even pauses of two minutes are too long, they stay so.
    """
    total = int(pauses.sum())
    if total <= longest:
        return pauses
    beyond = np.maximum(pauses - _SHORT, 0)
    excess = max(1, int(beyond.sum()))
    left = max(0, longest - int((pauses - beyond).sum()))
    short: NDArray[np.int64] = pauses - beyond + beyond * left // excess
    return short


def chain(steps: Bits16) -> NDArray[np.uint8]:
    """Kinds of messages one after the other; before the first there was a text.

    A step is a map from the kind before to the kind after. Most steps lead to a text from everywhere; from
    there on the kinds are known. The others follow in rounds, each one message further from such a step.
    """
    table = next_kinds()
    maps = table.reshape(-1, SLOTS)
    certain = maps.max(axis=0) == 0
    kinds = table[steps]  # right where the kind before is a text
    unsure = np.flatnonzero(~certain[steps])
    unsure = unsure[unsure > 0]
    known = np.ones(len(steps), dtype=bool)
    known[unsure] = False
    while len(unsure):
        ready = known[unsure - 1]
        now = unsure[ready]
        kinds[now] = table[kinds[now - 1].astype(np.int32) * SLOTS + steps[now]]
        known[now] = True
        unsure = unsure[~ready]
    return kinds


def everybody(author: NDArray[np.uint8], members: int, luck: Luck) -> NDArray[np.uint8]:
    """The authors, with random messages given to those who have none; nobody loses the first of theirs."""
    missing = np.flatnonzero(np.bincount(author, minlength=members) == 0)
    if len(missing):
        again = np.ones(len(author), dtype=bool)
        again[np.unique(author, return_index=True)[1]] = False
        free = np.flatnonzero(again)
        author[free[luck.order(len(free))[: len(missing)]]] = missing
    return author
