"""Who may change power levels, and to what (rule 9 of Matrix's authorisation rules).

That levels are numbers and people are ids is the decoder's to see. What is left: nobody gives or takes
what is above them, and nobody takes from their equals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from linnet.core.reasons import Reason
from linnet.identity.text import Sort, short
from linnet.rooms.access.facts import Fact
from linnet.rooms.access.levels import Levels, Rank, Version
from linnet.rooms.access.verdict import Refusal
from linnet.rooms.content import Power

_SCALARS = ("users_default", "events_default", "state_default", "ban", "redact", "kick", "invite")
K = TypeVar("K")


def power_allowed(fact: Fact, new: Power, levels: Levels) -> Refusal | None:
    """None if the sender may put these levels in the place of those that hold."""
    if levels.version is Version.V12 and any(map(levels.is_creator, new.users)):
        return Refusal(Reason.NOT_ALLOWED, "power: a creator has no level in the list")
    old = levels.power
    if old is None:
        return None
    level = levels.of(fact.sender)
    return _named_allowed(old, new, level) or _users_allowed(fact, old, new, level)


def _named_allowed(old: Power, new: Power, level: Rank) -> Refusal | None:
    """The single levels, and those of kinds: neither the old nor the new value is above the sender."""
    named = [(name, getattr(old, name), getattr(new, name)) for name in _SCALARS]
    for name, before, after in (*named, *_pairs(old.events, new.events)):
        if before == after:
            continue
        for value in (before, after):
            if value is not None and value > level:
                return Refusal(Reason.NO_POWER, f"power: level {level} is below {value} of {name}")
    return None


def _users_allowed(fact: Fact, old: Power, new: Power, level: Rank) -> Refusal | None:
    for person, before, after in _pairs(old.users, new.users):
        if before == after:
            continue
        name = short(Sort.PERSON, person)
        if before is not None and person != fact.sender and before >= level:
            return Refusal(Reason.NO_POWER, f"power: level {level} is not above {before} of {name}")
        if after is not None and after > level:
            return Refusal(Reason.NO_POWER, f"power: level {level} is below {after} for {name}")
    return None


def _pairs(old: Mapping[K, int], new: Mapping[K, int]) -> Iterator[tuple[K, int | None, int | None]]:
    for name in {**old, **new}:
        yield name, old.get(name), new.get(name)
