"""The retentions that are compared: their numbers, their names in tables, and how people read them."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.lab.errors import LabError
from linnet.lab.relays.chat_arrays import FAR
from linnet.rooms.config import RelayLimits

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000

NOTHING = 0
"""Relays hold nothing; who is online at the sending gets it, all others from its sender."""
UNLIMITED = FAR
"""Milliseconds that no chat lasts: relays forget nothing."""
OUR_DEFAULT = round(RelayLimits().max_lifetime * SECOND)
"""What relays of this project do where a room has decided nothing."""

RETENTIONS = (
    MINUTE,
    10 * MINUTE,
    HOUR,
    6 * HOUR,
    DAY,
    3 * DAY,
    7 * DAY,
    30 * DAY,
    90 * DAY,
)

_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"), (1, "ms"))


def sweep(retentions: Iterable[int]) -> tuple[int, ...]:
    """These retentions in order, and what all are measured against: none, our default and unlimited."""
    found = sorted({NOTHING, OUR_DEFAULT, *retentions})
    if found[0] < 0 or found[-1] >= UNLIMITED:
        raise LabError(f"retentions are from 0 to {UNLIMITED - 1} ms; {found[0]} to {found[-1]} were given")
    return (*found, UNLIMITED)


def mode_of(retention: int) -> str:
    """The mode under which a retention stands in tables."""
    return "unlimited" if retention == UNLIMITED else f"{retention}ms"


def name_of(retention: int) -> str:
    """A retention as people say it, in the largest unit that gives a whole number."""
    if retention in (NOTHING, UNLIMITED):
        return "none" if retention == NOTHING else "unlimited"
    size, unit = next((size, unit) for size, unit in _UNITS if retention % size == 0)
    return f"{retention // size} {unit}"
