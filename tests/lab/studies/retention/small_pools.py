"""Pools made by hand."""

from __future__ import annotations

from collections.abc import Sequence

from linnet.lab.bins import NEVER
from linnet.lab.relays.outcomes import EVERY_MODE, FIRST_DELIVERY
from linnet.lab.studies.relays.metrics import Pool
from linnet.lab.studies.retention.metrics import ALL
from linnet.lab.studies.retention.run import (
    HELD_BYTE_S,
    HELD_EVENT_S,
    OWED,
    OWED_EVER,
    OWED_WITHIN,
    PAIRS_EVER,
    PAIRS_WITHIN,
)
from linnet.lab.studies.retention.sweep import HOUR, mode_of, sweep

SWEPT = sweep([HOUR])
"""None, an hour, our default, unlimited."""

EVENTS, PAIRS, OWED_PAIRS = 50, 200, 100


def pool_of(
    within: Sequence[int] = (10, 40, 79, 80),
    undelivered: Sequence[int] = (9, 5, 4, 2),
    event_s: Sequence[int] = (0, 36_000, 72_000, 144_000),
    classes: Sequence[str] = (ALL,),
    margins: Sequence[int] = (3,),
) -> Pool:
    """Two chats that last two days; the same in every class and presence.

    `within` are owed pairs; of all pairs 30 more are served whatever the retention.
    """
    cells = {}
    sums = {"chats": 2, "members": 4, "events": EVENTS, "pairs": PAIRS, "member_s": 8 * 86_400}
    for population in classes:
        for measure, value in sums.items():
            cells[population, 0, EVERY_MODE, measure] = {0: value}
        for retention, held in zip(SWEPT, event_s, strict=True):
            cells[population, 0, mode_of(retention), HELD_EVENT_S] = {0: held}
            cells[population, 0, mode_of(retention), HELD_BYTE_S] = {0: 250 * held}
        for margin in margins:
            there = {PAIRS_EVER: within[-1] + 30, OWED: OWED_PAIRS, OWED_EVER: within[-1]}
            for measure, value in there.items():
                cells[population, margin, EVERY_MODE, measure] = {0: value}
            for retention, served, lost in zip(SWEPT, within, undelivered, strict=True):
                cells[population, margin, mode_of(retention), OWED_WITHIN] = {0: served}
                cells[population, margin, mode_of(retention), PAIRS_WITHIN] = {0: served + 30}
                delivered = {NEVER: lost, 0: EVENTS - lost}
                cells[population, margin, mode_of(retention), FIRST_DELIVERY] = delivered
    return Pool(cells)
