"""What must hold, whatever chats are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from linnet.lab.bins import NEVER, Bins, total
from linnet.lab.relays.outcomes import FIRST_DELIVERY
from linnet.lab.report.parts import Check
from linnet.lab.studies.relays.drawings import margin_name
from linnet.lab.studies.relays.metrics import Pool
from linnet.lab.studies.retention.metrics import CLASSES, Kept, Trade
from linnet.lab.studies.retention.sweep import NOTHING, UNLIMITED, mode_of, name_of

_GROWS: dict[str, tuple[str, Callable[[Kept], int]]] = {
    "retention.pairs": ("a longer retention serves no fewer pairs", lambda kept: kept.within),
    "retention.owed": (
        "a longer retention serves no fewer pairs that are owed",
        lambda kept: kept.owed_within,
    ),
    "retention.events": ("a longer retention holds no fewer event-hours", lambda kept: kept.event_s),
    "retention.bytes": ("a longer retention holds no fewer byte-hours", lambda kept: kept.byte_s),
    "retention.undelivered": (
        "a longer retention leaves no more events undelivered",
        lambda kept: -kept.undelivered,
    ),
}


def checks(pool: Pool, trades: Sequence[Trade]) -> Iterator[Check]:
    """Over every class, presence and retention."""
    for id, (says, value) in _GROWS.items():
        broken = [
            f"{where(trade)}: {name_of(longer.retention)} has {abs(value(longer)):,}, "
            f"{name_of(shorter.retention)} {abs(value(shorter)):,}"
            for trade in trades
            for shorter, longer in pairwise(trade.kept)
            if value(longer) < value(shorter)
        ]
        yield _check(id, says, broken, trades)
    yield _ever(trades)
    yield _check(
        "retention.between",
        "first deliveries are never later than without relays and never earlier than with relays that "
        "forget nothing",
        [fault for trade in trades for fault in _not_between(pool, trade)],
        trades,
    )
    yield _check(
        "retention.counted",
        "every event is counted once for each retention, what never came included",
        [
            f"{where(trade)}: {name_of(kept.retention)}"
            for trade in trades
            for kept in trade.kept
            if total(_first(pool, trade, kept.retention)) != kept.rooms.events
        ],
        trades,
    )


def where(trade: Trade) -> str:
    """The class and presence of a trade, in words."""
    return f"{CLASSES[trade.population]}, {margin_name(trade.margin)}"


def _ever(trades: Sequence[Trade]) -> Check:
    """The same number by another way: from when each member is last online."""
    broken = [
        f"{where(trade)}: {served:,} served, {there:,} there"
        for trade in trades
        for kept in (trade.unlimited,)
        for served, there in (
            (kept.within, kept.rooms.pairs_ever),
            (kept.owed_within, kept.rooms.owed_ever),
        )
        if served != there
    ]
    says = "unlimited retention serves every pair whose member is online at or after the sending"
    return _check("retention.unlimited", says, broken, trades)


def _not_between(pool: Pool, trade: Trade) -> Iterator[str]:
    without, unlimited = _first(pool, trade, NOTHING), _first(pool, trade, UNLIMITED)
    for kept in trade.kept:
        found = _first(pool, trade, kept.retention)
        if not (no_later(unlimited, found) and no_later(found, without)):
            yield f"{where(trade)}: {name_of(kept.retention)}"


def _first(pool: Pool, trade: Trade, retention: int) -> Bins:
    return pool.bins(trade.population, trade.margin, mode_of(retention), FIRST_DELIVERY)


def no_later(one: Bins, other: Bins) -> bool:
    """Whether at every time at least as many have come of the one as of the other."""
    ahead = 0
    for bin in sorted({*one, *other} - {NEVER}):
        ahead += one.get(bin, 0) - other.get(bin, 0)
        if ahead < 0:
            return False
    return True


def _check(id: str, says: str, broken: Sequence[str], trades: Sequence[Trade]) -> Check:
    looked = f"{len(trades)} classes and presences, {sum(len(trade.kept) for trade in trades):,} cells"
    return Check(id=id, says=says, ok=not broken, detail=broken[0] if broken else looked)
