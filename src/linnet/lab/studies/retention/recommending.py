"""Which retention a class of rooms should have, by a rule, and why.

The shortest retention of the sweep at which relays serve at least so much (99 % by default) of the owed pairs
of event and member that relays without a limit serve. Longer ones hold more for nearly nobody. Owed are pairs
whose member was there before: who comes for the first time a year later would ask for a year.

It is read at one presence. Phones decide where there are some, as theirs is presence that was measured. Of
margins it is the middle one: with the shortest, people come only to speak, and never just to read; with the
longest, that of the chat's longest silence, they hardly need relays. A sum over all margins would speak of
people who are both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from linnet.lab.studies.retention.metrics import Kept, Trade
from linnet.lab.studies.retention.sweep import NOTHING, UNLIMITED, name_of

PHONES = 0
"""The number by which presence like phones goes."""


class Recommendation(Struct, frozen=True):
    """A retention for a class of rooms."""

    trade: Trade
    kept: Kept
    reason: str

    @property
    def name(self) -> str:
        """How long, as people say it."""
        return name_of(self.kept.retention)


Advised = Mapping[tuple[str, int], Recommendation]
"""By class and presence."""


def deciding(margins: Sequence[int]) -> int:
    """The presence that decides: phones, or the middle margin."""
    return PHONES if PHONES in margins else sorted(margins)[len(margins) // 2]


def recommend(trade: Trade, share: float) -> Recommendation:
    """The shortest retention that serves this share of what unlimited retention serves."""
    wanted = share * trade.unlimited.owed_within
    place = next(number for number, each in enumerate(trade.kept) if each.owed_within >= wanted)
    kept = trade.kept[place]
    return Recommendation(trade, kept, _reason(trade, kept, trade.kept[place - 1] if place else None, share))


def _reason(trade: Trade, kept: Kept, shorter: Kept | None, share: float) -> str:
    if kept.retention == NOTHING or shorter is None:
        online = percent(trade.of_unlimited(kept))
        return f"{online} of what relays can serve at all is served at the sending: nothing need be held"
    short = f"{name_of(shorter.retention)} would serve {percent(trade.of_unlimited(shorter))}"
    if kept.retention == UNLIMITED:
        return f"nothing shorter serves {percent(share)} of what unlimited retention serves: {short}"
    served, held = percent(trade.of_unlimited(kept)), percent(trade.held(kept))
    return f"serves {served} of what unlimited retention serves, and holds {held} of its event-hours; {short}"


def percent(share: float) -> str:
    """A share in percent; what is not quite all or nothing does not read so."""
    digits = next((digits for digits in (1, 2, 3) if round(100 * share, digits) not in (0, 100)), 1)
    return f"{100 * share:.{digits if 0 < share < 1 else 0}f} %"
