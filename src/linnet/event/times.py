"""The times that authors claim, and which of them are doubtful.

An author's clock may be wrong, and a hostile author may claim any time. So nothing is kept, removed or held
back by it: a node measures age from when it had an event itself. For people a claimed time is useful all the
same. It is shown, and marked if it cannot be right as far as this node can tell
(docs/adr/0041-doubtful-times.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from linnet.event.event import Event, Verified

CLOCKS_APART = 300.0
"""Seconds by which two clocks may differ before a time is doubtful: as much as cards allow."""
_WITNESSES = 3
"""The fewest peers whose clocks can show that ours is the wrong one."""
_MS = 1000


def is_ahead(time_ms: int, had_at: float) -> bool:
    """Return whether an event claims to be later than when it was here, by more than clocks may differ."""
    return time_ms > (had_at + CLOCKS_APART) * _MS


def is_before(time_ms: int, cause_ms: int) -> bool:
    """Return whether an event claims to be earlier than its cause, by more than clocks may differ."""
    return time_ms + CLOCKS_APART * _MS < cause_ms


def doubt_unit(verified: Verified, had_at: float) -> Verified:
    """Mark the events of a unit whose times were ahead of the clock when the unit was here."""
    latest = (had_at + CLOCKS_APART) * _MS
    if all(event.tail.time <= latest for event in verified.events):
        return verified  # So it is for almost all units: nothing is copied.
    return replace(verified, events=tuple(doubt(event, had_at) for event in verified.events))


def doubt(event: Event, had_at: float) -> Event:
    """Mark an event whose time was ahead of the clock when it was here."""
    return replace(event, doubtful=True) if is_ahead(event.tail.time, had_at) else event


def clock_behind(ahead: Sequence[float]) -> float:
    """Return by how many seconds our clock is behind those of most peers; 0 if it agrees, or none can say.

    `ahead` is by how much each peer's clock is ahead of ours. It takes the middle one: half of the peers can
    lie and not move it out of the range of the honest ones.
    """
    if len(ahead) < _WITNESSES:
        return 0.0
    middle = sorted(ahead)[(len(ahead) - 1) // 2]
    return middle if middle > CLOCKS_APART else 0.0
