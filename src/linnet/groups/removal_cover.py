"""Tells whether removed members may still follow our keys, so that a new seed must precede our next message.

A removed member is shut out by a seed that was sent after its removal was seen. Two removals at the same time
each send their seed to the other's victim; and a newcomer gets no seed of a removal that its adder had not
seen. So for each seed that entered our ratchet we ask which removals its sender had seen; we are safe from
all removed members, colluding, once one seed came after all removals that we know (our own rule: Weidner et
al. 2021 suggest to notice such cases and to update before the next message).

Such a set of removals is worth keeping only while it holds all known ones, since these only grow: so one set
suffices.
"""

from __future__ import annotations

from collections.abc import Container

from msgspec import Struct

from linnet.core.ids import EventId
from linnet.groups import membership
from linnet.groups.labels import MemberId
from linnet.groups.membership import History


class Cover(Struct, frozen=True):
    """The removals that one seed in our ratchet was sent after; None while no seed came after all."""

    removes: frozenset[EventId] | None = None


NO_COVER = Cover()


def needs_heal(cover: Cover, history: History) -> bool:
    """Return whether no single seed in our ratchet came after all removals that are known."""
    return cover.removes is None or not membership.removes(history) <= cover.removes


def cover_by_seed(cover: Cover, history: History, sender: MemberId) -> Cover:
    """Return the cover after another member's seed entered our ratchet.

    The history has the seed's operation already, and no later one.
    """
    known = membership.removes(history)
    if known <= membership.removes_seen_by(history, sender):
        return Cover(known)
    return cover if not needs_heal(cover, history) else NO_COVER


def cover_by_own_seed(history: History) -> Cover:
    """Return the cover after a seed of our own; the history has its operation already."""
    return Cover(membership.removes(history))


def cover_by_welcome(history: History, healthy: bool) -> Cover:
    """Return the cover of a newcomer, by whether its adder needed no healing; `compact` uses it too."""
    return Cover(membership.removes(history)) if healthy else NO_COVER


def compact(history: History, cover: Cover, gone: Container[MemberId] | None = None) -> tuple[History, Cover]:
    """Drop from the history what cannot matter any more, and the same removals from the cover."""
    healthy = not needs_heal(cover, history)
    smaller = membership.compact(history, gone)
    return smaller, cover_by_welcome(smaller, healthy)
