"""Predicates: what a subscriber asks for, and the attributes of an event, in a language that people can read.

::

    stock/apple/price[10,20]        topics, and a closed range
    price(10,20]  price[10,)        open bounds, and a bound that is not there
    day[2026-11-01,2026-12-01)      dates, and moments such as 2026-11-16T08:30Z
    symbol="AA"*  symbol="AAPL"     how a text begins, and a text
    at{36.9,-9.6,42.2,-6.1}         a box on the map: south, west, north, east
    at{-20,170,-10,-175}            one that crosses the line at 180 degrees: west is the greater number
    stock/apple/price=12.5          an event: each attribute is a topic or one value

A predicate is a conjunction; the order in which it is written means nothing, and its canonical text is sorted
by name. That text is also its form on the wire: one parser, one form, and a kind of attribute that an old
node does not know spoils one message and not a link.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from itertools import pairwise, product
from typing import TypeVar

from msgspec import Struct

from linnet.content.attribute_types.geo_box import Box
from linnet.content.attribute_types.registry import (
    AFTER_NAME,
    FINDERS,
    Condition,
    covers,
    merged,
    read_condition,
)
from linnet.content.attribute_types.text import Topic
from linnet.content.predicate_reader import BadPredicate, Reader
from linnet.core.errors import BadText, RemoteError
from linnet.core.reasons import Reason

TEXT_CHARS = 2048
"""Characters of a predicate: all attributes at their longest fit."""
NAME_CHARS = 64
MOST_ATTRIBUTES = 8
"""Attributes at most, whatever is configured: an index may visit 2 to the power of these places."""
ATTRIBUTES = 5
"""The same, unless configured otherwise (Agostinho 2021)."""

_NAME = re.compile(r"""[^\s/\[\](){}<>,;:=~"'`*?!|^@\\]+""")

P = TypeVar("P", bound="Predicate")


class Predicate(Struct, frozen=True, gc=False):
    """Names, in order, with a condition for each: what accepts an event has to accept all of it."""

    conditions: tuple[tuple[str, Condition], ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.conditions]
        if not names or len(names) > MOST_ATTRIBUTES:
            raise BadText(f"a predicate has from 1 to {MOST_ATTRIBUTES} attributes")
        if any(one >= other for one, other in pairwise(names)):
            raise BadText("the names of a predicate are in order, each once")
        for name in names:
            _check_name(name)

    @property
    def size(self) -> int:
        """How many attributes it has."""
        return len(self.conditions)

    @property
    def is_expensive(self) -> bool:
        """Whether it has two conditions or more of which each can hold for many and both for few."""
        return sum(type(condition) in FINDERS for _, condition in self.conditions) > 1

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its attributes, in order."""
        return tuple(name for name, _ in self.conditions)

    @property
    def text(self) -> str:
        """The canonical text; equal predicates have equal texts, and others have others."""
        return "/".join(f"{name}{condition.text}" for name, condition in self.conditions)

    def __str__(self) -> str:
        return self.text

    @property
    def pieces(self) -> tuple[Predicate, ...]:
        """Predicates without boxes that cross the line at 180 degrees, which together accept what it does.

        Other nodes are asked for these: a node of version 0.1.0 cannot read such a box.
        """
        if not any(type(each) is Box and each.west > each.east for _, each in self.conditions):
            return (self,)
        parts = [
            [(name, piece) for piece in (each.pieces if isinstance(each, Box) else (each,))]
            for name, each in self.conditions
        ]
        return tuple(Predicate(chosen) for chosen in product(*parts))

    def covers(self, other: Predicate) -> bool:
        """Whether it accepts every event that the other accepts; for an event, whether it accepts it."""
        return self.accepts(dict(other.conditions))

    def accepts(self, attributes: Mapping[str, Condition]) -> bool:
        """The same, of attributes by name."""
        for name, condition in self.conditions:
            other = attributes.get(name)
            if other is None or not covers(condition, other):
                return False
        return True

    def merged(self, other: Predicate) -> Predicate | None:
        """The predicate that accepts exactly what either does, if they differ in one condition at most.

        Where two conditions differ, the box around both would accept what neither does.
        """
        if self.names != other.names:
            return None
        result: list[tuple[str, Condition]] = []
        differing = 0
        for (name, one), (_, another) in zip(self.conditions, other.conditions, strict=True):
            both = merged(one, another)
            differing += one != another
            if both is None or differing > 1:
                return None
            result.append((name, both))
        return Predicate(tuple(result))

    def served_by(self, group: Predicate) -> bool:
        """Whether a group of this predicate carries all that is asked for, perhaps among other things.

        The group may have topics that were not asked for; of each range it has to carry all that is asked.
        """
        carried = dict(group.conditions)
        return all(
            name in carried and covers(carried[name], condition) for name, condition in self.conditions
        )


class Attributes(Predicate, frozen=True, gc=False):
    """What an event says of itself: topics and single values."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(condition.exact for _, condition in self.conditions):
            raise BadText("an event has values, not ranges")


def read_predicate(text: str, most: int = ATTRIBUTES) -> Predicate:
    """What a subscriber wrote; `BadPredicate` says where it cannot be read."""
    return Predicate(_read(text, most, events=False))


def read_attributes(text: str, most: int = ATTRIBUTES) -> Attributes:
    """What a publisher wrote; `BadPredicate` says where it cannot be read."""
    return Attributes(_read(text, most, events=True))


def foreign_predicate(text: str, most: int = ATTRIBUTES) -> Predicate:
    """A predicate as it came from a peer; `RemoteError` unless it is a canonical text."""
    return _canonical(text, Predicate, most)


def foreign_attributes(text: str, most: int = ATTRIBUTES) -> Attributes:
    """An event's attributes as they came from a peer; `RemoteError` unless it is a canonical text."""
    return _canonical(text, Attributes, most)


def _canonical(text: str, kind: type[P], most: int) -> P:
    try:
        found = kind(_read(text, most, events=kind is Attributes))
    except BadPredicate as error:
        raise RemoteError(Reason.MALFORMED, f"character {error.at + 1}: not {error.expected}") from error
    if found.text != text:
        raise RemoteError(Reason.MALFORMED, "a predicate that is not in its canonical form")
    return found


def _read(text: str, most: int, events: bool) -> tuple[tuple[str, Condition], ...]:
    if len(text) > TEXT_CHARS:
        raise BadPredicate(text, TEXT_CHARS, f"at most {TEXT_CHARS} characters")
    reader = Reader(text)
    conditions: dict[str, Condition] = {}
    while True:
        name, at = _read_name(reader)
        if name in conditions:
            reader.fail(f"each name once; {name} was there before", at)
        if len(conditions) >= min(most, MOST_ATTRIBUTES):
            reader.fail(f"the end after {len(conditions)} attributes", at)
        reader.peek()
        start = reader.at
        condition = read_condition(reader)
        if events and not condition.exact:
            reader.fail("= and one value, or nothing: an event has values, not ranges", start)
        conditions[name] = condition
        if not reader.peek():
            return tuple(sorted(conditions.items()))
        if not reader.take("/"):
            after = f", {', '.join(AFTER_NAME)}, =" if isinstance(condition, Topic) else ""
            reader.fail(f"/{after} or the end")


def _read_name(reader: Reader) -> tuple[str, int]:
    reader.peek()
    at = reader.at
    found = reader.match(_NAME)
    if found is None:
        reader.fail("a name")
    for place, character in enumerate(found.group(), at):
        if not character.isprintable():
            reader.fail("a character that can be printed", place)
    name = unicodedata.normalize("NFC", found.group())
    if not _NAME.fullmatch(name):
        reader.fail("a name without signs that stand for others", at)
    if len(name) > NAME_CHARS:
        reader.fail(f"a name of at most {NAME_CHARS} characters", at)
    return name, at


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or not name.isprintable() or len(name) > NAME_CHARS:
        raise BadText(f"{name!r} cannot be the name of an attribute")
    if unicodedata.normalize("NFC", name) != name:
        raise BadText(f"{name!r} is not in Unicode's composed form")
