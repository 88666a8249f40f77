"""Power levels: who has which, and which is asked for (Matrix specification, room versions 11 and 12)."""

from __future__ import annotations

import math
from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import AuthorId
from linnet.rooms.access.facts import POWER_KEY, Fact, StateView
from linnet.rooms.content import Create, Power

Rank: TypeAlias = int | float
"""A person's level: an int, or `INFINITE`, which is above each of them."""

INFINITE = math.inf
_NO_POWER = Power()
_CREATOR_OF_11 = 100


class Version(Enum):
    """The Matrix room version whose meaning holds. Ours is 12; 11 is for comparison with other work."""

    V11 = 11
    V12 = 12


class Levels(Struct, frozen=True, gc=False):
    """The levels that hold in one state."""

    create: Fact
    power: Power | None
    """None: no power levels were ever set."""
    version: Version = Version.V12

    def is_creator(self, person: AuthorId) -> bool:
        """Whether this person founded the room, alone or with others: version 12 makes them infinite."""
        return person == self.create.sender or person in additional_creators(self.create)

    def of(self, person: AuthorId) -> Rank:
        """The level of a person."""
        if self.version is Version.V12 and self.is_creator(person):
            return INFINITE
        if self.power is None:
            return _CREATOR_OF_11 if self.version is Version.V11 and person == self.create.sender else 0
        level = self.power.users.get(person)
        return level if level is not None else self.power.users_default or 0

    def required(self, kind: str, is_state: bool) -> int:
        """The level that is asked of whoever sends this kind."""
        power = self.power or _NO_POWER
        level = power.events.get(kind)
        if level is not None:
            return level
        return _or(power.state_default, 50) if is_state else _or(power.events_default, 0)

    @property
    def invite(self) -> int:
        """The level that is asked of whoever invites."""
        return _or((self.power or _NO_POWER).invite, 0)

    @property
    def kick(self) -> int:
        """The level that is asked of whoever puts another out."""
        return _or((self.power or _NO_POWER).kick, 50)

    @property
    def ban(self) -> int:
        """The level that is asked of whoever bans or unbans."""
        return _or((self.power or _NO_POWER).ban, 50)

    @property
    def redact(self) -> int:
        """The level that is asked of whoever takes back what another said."""
        return _or((self.power or _NO_POWER).redact, 50)


def levels_in(view: StateView, version: Version = Version.V12) -> Levels:
    """The levels that hold in a state."""
    power = view.get(POWER_KEY)
    return Levels(view.create, power.content if power and isinstance(power.content, Power) else None, version)


def additional_creators(create: Fact) -> tuple[AuthorId, ...]:
    """The creators beside the author of the create event."""
    return create.content.creators if isinstance(create.content, Create) else ()


def _or(level: int | None, default: int) -> int:
    return default if level is None else level
