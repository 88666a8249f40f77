"""Whether removed members may still follow our keys, so that a new seed must come before our next message.

A removed member is shut out by a seed that was sent after its removal was seen. Two removals at the same
time each send their seed to the other's victim; and a newcomer gets no seed of a removal that its
adder had not seen. So for each seed that entered our ratchet we ask which removals its sender had seen;
we are safe from all removed members, colluding, once one seed came after all removals that we know
(an own rule: Weidner et al. 2021 suggest to notice such cases and to update before the next message).

Such a set of removals is worth keeping only while it holds all that are known, since what is known only
grows: so one set suffices.
"""

from __future__ import annotations

from collections.abc import Container

from msgspec import Struct

from linnet.core.ids import EventId
from linnet.groups import membership
from linnet.groups.ids import MemberId
from linnet.groups.membership import History


class Cover(Struct, frozen=True):
    """The removals that one seed in our ratchet was sent after; None while no seed holds all."""

    removes: frozenset[EventId] | None = None


NONE = Cover()


def needs_heal(cover: Cover, history: History) -> bool:
    """Whether a removal is known that no single seed of ours came after together with all others."""
    return cover.removes is None or not membership.removes(history) <= cover.removes


def incorporated(cover: Cover, history: History, sender: MemberId) -> Cover:
    """A seed of a member entered our ratchet. The history has that operation already, and no later one."""
    known = membership.removes(history)
    if known <= membership.removes_seen_by(history, sender):
        return Cover(known)
    return cover if not needs_heal(cover, history) else NONE


def own(history: History) -> Cover:
    """We sent a seed ourselves, having seen all that we know; the history has that operation already."""
    return Cover(membership.removes(history))


def welcomed(history: History, healthy: bool) -> Cover:
    """We were added with this history by one who needed no healing, or did. So it is stored, too."""
    return Cover(membership.removes(history)) if healthy else NONE


def compact(history: History, cover: Cover, gone: Container[MemberId] | None = None) -> tuple[History, Cover]:
    """Forget in the history what cannot matter any more, and the same removals in the cover."""
    healthy = not needs_heal(cover, history)
    smaller = membership.compact(history, gone)
    return smaller, welcomed(smaller, healthy)
