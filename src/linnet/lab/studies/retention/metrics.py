"""Classes of rooms, everything summed over their chats, and what each retention costs and brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from linnet.lab.bins import NEVER
from linnet.lab.relays.outcomes import EVERY_MODE, FIRST_DELIVERY
from linnet.lab.studies.relays.metrics import Pool, summed
from linnet.lab.studies.relays.run import PROFILE
from linnet.lab.studies.retention.run import (
    CHATS,
    EVENTS,
    HELD_BYTE_S,
    HELD_EVENT_S,
    MEMBER_S,
    MEMBERS,
    OWED,
    OWED_EVER,
    OWED_WITHIN,
    PAIRS,
    PAIRS_EVER,
    PAIRS_WITHIN,
    WHOEVER_IS_ONLINE,
)
from linnet.lab.studies.retention.sweep import NOTHING, OUR_DEFAULT, UNLIMITED, mode_of

ALL = "all"


class Size(NamedTuple):
    """A class of rooms by their members."""

    id: str
    title: str
    short: str
    most: int
    """Members at most."""


SIZES = (
    Size("dyads", "2 members", "2", 2),
    Size("small", "3 to 9 members", "3 to 9", 9),
    Size("medium", "10 to 30 members", "10 to 30", 30),
    Size("large", "more than 30 members", "31 or more", 2**31 - 1),
)
PACES = ("lively", "slow")
"""By whether the median pause between messages is at most the border, or longer."""

CLASSES = {ALL: "all rooms"} | {
    f"{size.id}-{pace}": f"{size.title}, {pace}" for size in SIZES for pace in PACES
}
"""Names of classes by their ids, in the order of reports."""
SHORT = {ALL: "all"} | {f"{size.id}-{pace}": f"{size.short}\n{pace}" for size in SIZES for pace in PACES}
"""The same where there is little room."""


def classed(profiles: DataFrame, lively: int) -> DataFrame:
    """The populations of each chat that can be looked at: grain (chat, population)."""
    size = f.lit(SIZES[-1].id)
    for each in reversed(SIZES[:-1]):
        size = f.when(f.col("members") <= each.most, each.id).otherwise(size)
    pace = f.when(f.col("median_iat_ms") <= lively, "lively").otherwise("slow")
    name = f.concat_ws("-", size, pace)
    usable = profiles.where((f.col("members") >= 2) & (f.col("max_iat_ms") > 1000))
    return usable.select("chat", f.explode(f.array(f.lit(ALL), name)).alias("population"))


def pooled(outcomes: DataFrame, profiles: DataFrame, lively: int) -> DataFrame:
    """All chats of a class together: grain (population, margin, mode, measure, bin)."""
    told = outcomes.where(f.col("mode") != PROFILE)
    return summed(told.join(f.broadcast(classed(profiles, lively)), "chat"))


def classes_in(pool: Pool) -> list[str]:
    """Classes that have any chats, in the order of reports."""
    found = {population for population, *_ in pool.cells}
    return [name for name in CLASSES if name in found]


def presences_in(pool: Pool) -> list[int]:
    """The numbers of the presences, ascending; 0 is phones."""
    return sorted({margin for _, margin, _, measure in pool.cells if measure == PAIRS_EVER})


class Rooms(Struct, frozen=True):
    """What the rooms of a class are, whatever their relays keep."""

    chats: int
    members: int
    events: int
    pairs: int
    """Pairs of event and other member."""
    member_s: int
    pairs_ever: int
    """Pairs whose member is online at or after the sending at all: more cannot be served."""
    owed: int
    """Pairs whose member was online before the sending or at it."""
    owed_ever: int
    """Those of them whose member is online at or after the sending."""


class Kept(Struct, frozen=True):
    """What one retention brings and costs in the rooms of a class."""

    retention: int
    rooms: Rooms
    within: int
    """Pairs that a relay still can serve."""
    owed_within: int
    """Those of them that are owed."""
    undelivered: int
    """Events that nobody else ever gets, from a relay or the sender."""
    event_s: int
    byte_s: int

    @property
    def served(self) -> float:
        """Share of the pairs that are owed which relays serve."""
        return ratio(self.owed_within, self.rooms.owed)

    @property
    def served_of_all(self) -> float:
        """Share of all pairs that relays serve, those included whose member had never been there before."""
        return ratio(self.within, self.rooms.pairs)

    @property
    def undelivered_share(self) -> float:
        """Share of events that nobody else ever gets."""
        return ratio(self.undelivered, self.rooms.events)

    @property
    def hours_per_event(self) -> float:
        """Hours for which one relay holds an event, on average."""
        return ratio(self.event_s, self.rooms.events) / 3600

    @property
    def hours_per_member_day(self) -> float:
        """Event-hours that one relay holds for each member and day of the chat."""
        return ratio(self.event_s * 86_400, self.rooms.member_s) / 3600

    @property
    def megabyte_hours(self) -> float:
        """Of one relay in each room, summed."""
        return self.byte_s / 3600 / 10**6


class Trade(Struct, frozen=True):
    """Every retention of the sweep, in order, for one class and presence."""

    population: str
    margin: int
    kept: tuple[Kept, ...]

    def at(self, retention: int) -> Kept:
        """What this retention brings and costs."""
        return next(each for each in self.kept if each.retention == retention)

    @property
    def nothing(self) -> Kept:
        """Without relays."""
        return self.at(NOTHING)

    @property
    def unlimited(self) -> Kept:
        """With relays that forget nothing."""
        return self.at(UNLIMITED)

    @property
    def ours(self) -> Kept:
        """With our default."""
        return self.at(OUR_DEFAULT)

    def of_unlimited(self, kept: Kept) -> float:
        """Share of the owed pairs that unlimited retention serves; 1 if those are none."""
        whole = self.unlimited.owed_within
        return ratio(kept.owed_within, whole) if whole else 1.0

    def held(self, kept: Kept) -> float:
        """Share of the event-hours that unlimited retention holds."""
        return ratio(kept.event_s, self.unlimited.event_s)


def ratio(part: int, whole: int) -> float:
    """A share, or a mean; 0 of nothing."""
    return part / whole if whole else 0.0


def trade_of(pool: Pool, population: str, margin: int, swept: Sequence[int]) -> Trade:
    """What each retention brings and costs in a class."""

    def total(mode: str, measure: str, margin: int = WHOEVER_IS_ONLINE) -> int:
        return pool.total(population, margin, mode, measure)

    chats, members, events, pairs, member_s = (
        total(EVERY_MODE, measure) for measure in (CHATS, MEMBERS, EVENTS, PAIRS, MEMBER_S)
    )
    there = (total(EVERY_MODE, measure, margin) for measure in (PAIRS_EVER, OWED, OWED_EVER))
    rooms = Rooms(chats, members, events, pairs, member_s, *there)
    kept = tuple(
        Kept(
            retention,
            rooms,
            total(mode, PAIRS_WITHIN, margin),
            total(mode, OWED_WITHIN, margin),
            pool.bins(population, margin, mode, FIRST_DELIVERY).get(NEVER, 0),
            total(mode, HELD_EVENT_S),
            total(mode, HELD_BYTE_S),
        )
        for retention in swept
        for mode in (mode_of(retention),)
    )
    return Trade(population, margin, kept)
