"""Which way to synchronise is the cheaper: the heads walk, or set reconciliation.

The walk sends what is missing and nothing else, as long as the one who is asked knows the asker's heads.
Where both have gone on apart it would send again all that lies beyond the heads that it knows.
Reconciliation finds the difference wherever it is, at a price for each piece of it.
"""

from __future__ import annotations

from enum import StrEnum
from math import ceil, log

from msgspec import Struct

_EVENT_BYTES = 400
"""An event with its references and signature and a line of text, as it travels."""
_RANGE_BYTES = 84
"""A range with its fingerprint."""
_ID_BYTES = 34
_ROUND_BYTES = 2048
"""What a round trip more is worth: so much could have been sent meanwhile even over a slow link."""
SPLIT = 8
"""Parts into which reconciliation splits a range that differs."""
LIST = 32
"""Ids up to which it lists a range that differs instead."""


class Way(StrEnum):
    """How to synchronise with a peer."""

    NOTHING = "nothing"
    WALK = "walk"
    RECONCILE = "reconcile"


class Standing(Struct, frozen=True, gc=False):
    """How far one side is."""

    heads: int
    events: int
    unknown: int | None
    """How many of its heads the other does not know; None: it is not known yet."""


def plan(ours: Standing, theirs: Standing) -> Way:
    """How we get what they have; they ask the same for themselves.

    Whoever knows all heads of the other has all that the other has. While they have not said which of our
    heads they lack the walk is tried, and its answer says so.
    """
    if not theirs.unknown:
        return Way.NOTHING
    if not ours.unknown:
        return Way.WALK
    return Way.WALK if walk_bytes(ours, theirs) <= reconcile_bytes(ours, theirs) else Way.RECONCILE


def walk_bytes(ours: Standing, theirs: Standing) -> int:
    """Bytes that a walk is expected to bring us: E * n * u / h.

    Of their n events they send all that lies beyond those of our heads that they know. If they know u of
    our h heads not, that is taken to be the share u / h of all they have; E is the size of an event.
    """
    share = (ours.unknown or 0) / ours.heads if ours.heads else 1.0
    return max(ceil(theirs.events * share), _lacking(ours, theirs)) * _EVENT_BYTES


def reconcile_bytes(ours: Standing, theirs: Standing) -> int:
    """Bytes that reconciliation and what it brings us are expected to cost: C(d, n) + T r + E m.

    C is what it takes to find d differences among n events, m is how many of them we lack, and each of the
    r levels is a round trip that the walk does not need.
    """
    apart = max(1, (ours.unknown or 0) + (theirs.unknown or 0), abs(ours.events - theirs.events))
    events = max(ours.events, theirs.events, 1)
    waiting = ceil((1 + _levels(apart, events)) * _ROUND_BYTES)
    return compare_bytes(apart, events) + waiting + _lacking(ours, theirs) * _EVENT_BYTES


def compare_bytes(apart: int, events: int) -> int:
    """Bytes to find d differences that are spread over n events: 8 R d (1 + log_8(n / 32 d)) + 32 I d.

    Each goes its own way down through log_8(n / 32 d) levels of 8 fingerprints, below about d ranges that
    they share, and ends in a list of up to 32 ids. R is the size of a range, I of an id. No level has more
    than n / 32 ranges, and no more than all ids are listed.
    """
    levels = _levels(apart, events)
    ranges = min(apart * levels * SPLIT, events / LIST * levels)
    return ceil(ranges * _RANGE_BYTES + min(apart * LIST, events) * _ID_BYTES)


def _levels(apart: int, events: int) -> float:
    return 1 + max(0.0, log(events / (LIST * apart), SPLIT))


def _lacking(ours: Standing, theirs: Standing) -> int:
    """How many events we lack, at least: the difference in size, and one for each unknown head."""
    return max(theirs.events - ours.events, theirs.unknown or 0)
