"""A chat as arrays, and what is computed from it once for all margins.

Two orders are used throughout. *Time order* is that of the messages; *member order* has all messages
of the first member, by time, then those of the second, and so on. `ChatIndex` leads from one to the other.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linnet.lab.errors import LabError

I32: TypeAlias = NDArray[np.int32]
I64: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

FAR = 2**62
"""A time after all others."""
_SMALL = 2**16


class ChatArrays(NamedTuple):
    """Who said how much when, in one chat."""

    ts: I64
    """Milliseconds since the first message, ascending."""
    user: I32
    """Members are numbered from 0 without gaps."""
    chars: I32
    members: int


class ChatIndex(NamedTuple):
    """A chat with its orders; made once, used for every presence."""

    chat: ChatArrays
    order: I64
    """Time-order place of each message, in member order."""
    rank: I64
    """Member-order place of each message, in time order."""
    ts: I64
    """In member order."""
    user: I32
    """In member order."""
    since: I64
    """Milliseconds since the same member's message before, in time order; `FAR` for the first."""
    until: I64
    """Milliseconds until the same member's next message, in time order; `FAR` for the last."""
    said_at: I64
    """Times in time order, with `FAR` for the place after the last."""
    said_by: I32
    """Members in time order, with -1 for the place after the last."""
    next_other: I64
    """Time-order place of the next message by somebody else; one entry more than messages, for none."""


def chat_arrays(ts: ArrayLike, user: ArrayLike, chars: ArrayLike) -> ChatArrays:
    """A chat of any times and any user codes; messages at one time keep their order."""
    times, codes = np.asarray(ts, dtype=np.int64), np.asarray(user)
    lengths = np.asarray(chars, dtype=np.int32)
    if not len(times) == len(codes) == len(lengths):
        raise LabError(f"{len(times)} times, {len(codes)} users and {len(lengths)} lengths are no chat")
    if not len(times):
        raise LabError("a chat without messages cannot be replayed; leave it out")
    order = np.argsort(times, kind="stable")
    known, dense = np.unique(codes, return_inverse=True)
    relative = times[order] - times[order[0]]
    return ChatArrays(relative, dense.reshape(-1)[order].astype(np.int32), lengths[order], len(known))


def index_chat(chat: ChatArrays) -> ChatIndex:
    """Sort a chat by members."""
    order = by_member(chat.user)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    ts, user = chat.ts[order], chat.user[order]
    since = np.full(len(ts) + 1, FAR, dtype=np.int64)
    same = user[1:] == user[:-1]
    since[1:-1][same] = (ts[1:] - ts[:-1])[same]
    said_at, said_by = padded(chat.ts), np.append(chat.user, np.int32(-1))
    # The chat itself keeps no copy of what is there with one place more.
    chat = chat._replace(ts=said_at[:-1], user=said_by[:-1])
    others = next_other(chat.user)
    return ChatIndex(chat, order, rank, ts, user, since[rank], since[rank + 1], said_at, said_by, others)


def by_member(member: I32) -> I64:
    """The order that puts members one after the other, each as it was."""
    # Sixteen bits are sorted by radix, ten times as fast as thirty-two.
    small = member.max(initial=0) < _SMALL
    return np.argsort(member.astype(np.uint16) if small else member, kind="stable")


def next_other(member: I32) -> I64:
    """For each place the next one with another member; the number of places if there is none.

    One entry more stands for the place after the last.
    """
    places = len(member)
    changes = np.flatnonzero(member[1:] != member[:-1]) + 1
    bounds = np.concatenate((changes, [places]))
    lengths = np.diff(bounds, prepend=0)
    return np.concatenate((np.repeat(bounds, lengths), [places]))


def padded(times: I64) -> I64:
    """Times with `FAR` behind them, so that the place after the last can be asked."""
    return np.concatenate((times, np.array([FAR], dtype=np.int64)))
