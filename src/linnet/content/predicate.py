"""Predicates, by which subscribers choose events, and the attributes of events, in a readable language.

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
from collections.abc import Callable, Mapping
from itertools import pairwise, product
from typing import TypeAlias, TypeVar, cast

from msgspec import Struct

from linnet.content.attribute_types.geo_box import Box, read_box, read_point
from linnet.content.attribute_types.numbers import BEGINS, DateRange, NumberRange, read_exactly, read_span
from linnet.content.attribute_types.text import TOPIC, BadPredicate, Reader, Topic, Words, read_words
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

Condition: TypeAlias = Topic | NumberRange | DateRange | Words | Box
"""The condition of a predicate on one attribute; an event has conditions of a single value.

So *does this event match* and *does this predicate cover that one* are the same question. To add a kind,
write a module in `attribute_types`, and add it to this list, to `RANGES`, to `VALUES` and, with its finder,
to `matching_index.FINDERS`.
"""


class Form(Struct, frozen=True):
    """The notation of a kind: the characters that begin it, and the function that reads it from there."""

    begins: str
    read: Callable[[Reader], Condition]


RANGES = (Form("[(", read_span), Form("{", read_box))
"""The forms that may follow a name directly."""

VALUES = (Form(BEGINS, read_exactly), Form('"', read_words), Form("{", read_point))
"""The forms that may follow a name and ``=``."""
AFTER_NAME = "".join(form.begins for form in RANGES)


def read_condition(reader: Reader) -> Condition:
    """Read the condition that follows a name: a range, ``=`` and a value, or nothing."""
    if reader.take("="):
        return _read_form(reader, VALUES, 'a value: a number, a date, "text" or {latitude,longitude}')
    following = reader.peek()
    if following and following in AFTER_NAME:
        return _read_form(reader, RANGES, "a range")
    return TOPIC


def _read_form(reader: Reader, forms: tuple[Form, ...], expected: str) -> Condition:
    following = reader.peek()
    for form in forms:
        if following and following in form.begins:
            return form.read(reader)
    reader.fail(expected)


def covers(one: Condition, other: Condition) -> bool:
    """Return whether one accepts all that the other accepts; conditions of two kinds never do."""
    if type(one) is not type(other):
        return False
    covers_it = cast("Callable[[Condition], bool]", one.covers)  # Both are of one type.
    return covers_it(other)


def merged(one: Condition, other: Condition) -> Condition | None:
    """Return the condition that accepts exactly what either of two accepts; None if no single one can."""
    if type(one) is not type(other):
        return None
    merge_with = cast("Callable[[Condition], Condition | None]", one.merged)  # Both are of one type.
    return merge_with(other)


class Predicate(Struct, frozen=True, gc=False):
    """Names, in order, with a condition for each; a predicate accepts an event if all conditions do."""

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
        """The number of its attributes."""
        return len(self.conditions)

    @property
    def is_expensive(self) -> bool:
        """Whether it has two or more conditions beside topics: each can hold for many, and all for few."""
        return sum(not isinstance(condition, Topic) for _, condition in self.conditions) > 1

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its attributes, in order."""
        return tuple(name for name, _ in self.conditions)

    @property
    def text(self) -> str:
        """The canonical text: two predicates are equal exactly if their texts are."""
        return "/".join(f"{name}{condition.text}" for name, condition in self.conditions)

    def __str__(self) -> str:
        return self.text

    @property
    def pieces(self) -> tuple[Predicate, ...]:
        """Predicates without boxes that cross the line at 180 degrees; together they accept the same events.

        Other nodes are sent these: a node of version 0.1.0 cannot read such a box.
        """
        if not any(type(each) is Box and each.west > each.east for _, each in self.conditions):
            return (self,)
        parts = [
            [(name, piece) for piece in (each.pieces if isinstance(each, Box) else (each,))]
            for name, each in self.conditions
        ]
        return tuple(Predicate(chosen) for chosen in product(*parts))

    def covers(self, other: Predicate) -> bool:
        """Return whether it accepts all that the other accepts, or an event with these attributes."""
        return self.accepts(dict(other.conditions))

    def accepts(self, attributes: Mapping[str, Condition]) -> bool:
        """Return whether it accepts these attributes, given by name."""
        for name, condition in self.conditions:
            other = attributes.get(name)
            if other is None or not covers(condition, other):
                return False
        return True

    def merged(self, other: Predicate) -> Predicate | None:
        """Return a predicate for exactly what either accepts, if at most one condition differs; else None.

        Where two conditions differ, the box around both would accept what neither accepts.
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
        """Return whether a group of this predicate carries all that this one accepts, perhaps among more.

        The group may have topics that were not asked for; of each range it has to carry all that is asked.
        """
        carried = dict(group.conditions)
        return all(
            name in carried and covers(carried[name], condition) for name, condition in self.conditions
        )


class Attributes(Predicate, frozen=True, gc=False):
    """The attributes of an event: topics and single values."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(condition.exact for _, condition in self.conditions):
            raise BadText("an event has values, not ranges")


def read_predicate(text: str, most: int = ATTRIBUTES) -> Predicate:
    """Read a subscriber's predicate; `BadPredicate` names the character where it cannot be read."""
    return Predicate(_read(text, most, events=False))


def read_attributes(text: str, most: int = ATTRIBUTES) -> Attributes:
    """Read a publisher's attributes; `BadPredicate` names the character where they cannot be read."""
    return Attributes(_read(text, most, events=True))


def foreign_predicate(text: str, most: int = ATTRIBUTES) -> Predicate:
    """Read a predicate that came from a peer; `RemoteError` unless it is a canonical text."""
    return _canonical(text, Predicate, most)


def foreign_attributes(text: str, most: int = ATTRIBUTES) -> Attributes:
    """Read an event's attributes that came from a peer; `RemoteError` unless it is a canonical text."""
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
