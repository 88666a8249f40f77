"""Where a predicate lives: at one of its attributes, and there in one piece.

The rule is that of the rendezvous: a predicate is at one of its attributes, and an event goes to all of its
own, so the two meet once and nowhere else. A node goes to the attribute nearest to it; here, where all is
known, a predicate goes to the condition that fewest events satisfy, and popular ones are never asked for it.

An attribute where many live is cut by value: an event goes to the piece of its value alone. A topic has no
value; there predicates are dealt out, and an event goes to all of its pieces.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from msgspec import Struct

from linnet.content.attribute_types.geo_box import Box
from linnet.content.attribute_types.text import Topic, Words
from linnet.content.predicate import Attributes, Condition, Predicate

Place = tuple[str, str]
"""Name and kind of an attribute."""
_LETTERS = 6
"""Bytes of a text that it is ordered by: as many as a float tells apart."""


def keys_of(condition: Condition) -> tuple[float, float]:
    """From where to where a condition accepts values, in an order of its kind; of a value, both are equal.

    Whatever a condition accepts lies within: texts are ordered by how they begin, boxes by latitude.
    """
    if isinstance(condition, Topic):
        return 0.0, 0.0
    if isinstance(condition, Box):
        return condition.south, condition.north
    if isinstance(condition, Words):
        begins = condition.begins.encode()[:_LETTERS]
        low = int.from_bytes(begins.ljust(_LETTERS, b"\0"))
        high = low if condition.whole else int.from_bytes(begins.ljust(_LETTERS, b"\xff"))
        return float(low), float(high)
    return condition.low, condition.high


def place_of(name: str, condition: Condition) -> Place:
    """The attribute of a condition; two kinds of one name have nothing in common."""
    return name, type(condition).__name__


class Rarity:
    """How many events satisfy a condition, as a sample of them tells."""

    def __init__(self, sample: Sequence[Attributes]) -> None:
        self._events = max(1, len(sample))
        self._values: dict[Place, list[float]] = {}
        for attributes in sample:
            for name, condition in attributes.conditions:
                self._values.setdefault(place_of(name, condition), []).append(keys_of(condition)[0])
        for values in self._values.values():
            values.sort()

    def share(self, name: str, condition: Condition) -> float:
        """Of all events; 0 where no event of the sample has such an attribute."""
        values = self._values.get(place_of(name, condition), ())
        low, high = keys_of(condition)
        return (bisect_right(values, high) - bisect_left(values, low)) / self._events

    def home(self, predicate: Predicate) -> tuple[str, Condition]:
        """The condition that fewest events satisfy; of equal ones the first that has values."""
        return min(
            predicate.conditions,
            key=lambda pair: (self.share(*pair), isinstance(pair[1], Topic), pair[0]),
        )


class Settlement(Struct, frozen=True):
    """How many live at an attribute, and where their ranges begin."""

    name: str
    kind: str
    predicates: int
    begins: tuple[float, ...]
    """Of some of them, evenly spread, in order."""


class Home(Struct, frozen=True):
    """The pieces of one attribute."""

    first: int
    """Its first piece; the others follow."""
    pieces: int
    cuts: tuple[float, ...]
    """Values from which on the next piece has them; none where predicates are dealt out."""

    def of_range(self, low: float, high: float, number: int) -> range:
        """The pieces of a predicate from one value to another; its number deals it out where none are."""
        if not self.cuts:
            one = self.first + number % self.pieces
            return range(one, one + 1)
        return range(
            self.first + bisect_right(self.cuts, low), self.first + bisect_right(self.cuts, high) + 1
        )

    def of_value(self, value: float) -> range:
        """The pieces where a predicate may be that accepts this value."""
        if not self.cuts:
            return range(self.first, self.first + self.pieces)
        one = self.first + bisect_right(self.cuts, value)
        return range(one, one + 1)


class Plan(Struct, frozen=True):
    """All pieces."""

    homes: dict[Place, Home]
    pieces: int

    def of_event(self, attributes: Attributes) -> list[int]:
        """Every piece that an event goes to, each once."""
        found: dict[int, None] = {}
        for name, condition in attributes.conditions:
            home = self.homes.get(place_of(name, condition))
            if home is not None:
                found.update(dict.fromkeys(home.of_value(keys_of(condition)[0])))
        return list(found)


def make_plan(settlements: Iterable[Settlement], capacity: int) -> Plan:
    """Pieces of about so many predicates: attributes with many are cut, those with few share a piece."""
    homes: dict[Place, Home] = {}
    pieces, room, shared = 0, 0, 0
    for each in sorted(settlements, key=lambda one: (-one.predicates, one.name, one.kind)):
        place = (each.name, each.kind)
        if 2 * each.predicates > capacity:
            wanted = -(-each.predicates // capacity)
            cuts = () if each.kind == Topic.__name__ else _cuts(each.begins, wanted)
            count = len(cuts) + 1 if each.kind != Topic.__name__ else wanted
            homes[place] = Home(pieces, count, cuts)
            pieces += count
            continue
        if each.predicates > room:
            shared, room = pieces, capacity
            pieces += 1
        homes[place] = Home(shared, 1, ())
        room -= each.predicates
    return Plan(homes, pieces)


def _cuts(begins: Sequence[float], wanted: int) -> tuple[float, ...]:
    """Values that part those who live at an attribute into about equal lots."""
    if not begins:
        return ()
    places = [begins[len(begins) * lot // wanted] for lot in range(1, wanted)]
    return tuple(sorted({value for value in places if value > begins[0]}))
