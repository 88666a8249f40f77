"""Subscriptions around the values of a stream: what somebody who knows its records might ask for.

One range of each is narrow and the others are wide, as in `flight from Detroit, about 1750 miles, late`; so a
subscription accepts few events whatever its number of attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from random import Random

from linnet.content.attribute_types.geo_box import Box
from linnet.content.attribute_types.numbers import DateRange, NumberRange, plain_number
from linnet.content.attribute_types.text import Topic, Words
from linnet.content.predicate import Attributes, Condition, Predicate

Widths = Mapping[tuple[str, str], float]
"""By stream and attribute, how far most of its values lie apart."""
NARROW, WIDE = (-6.0, -4.0), (-1.5, -0.2)
"""Powers of ten that a range is of those widths."""
_MINUTE_MS = 60_000
_KEPT, _TOPIC, _ONE_SIDED, _BEGINNING = 0.85, 0.8, 0.2, 0.15


def widths_of(records: Iterable[tuple[str, Attributes]]) -> dict[tuple[str, str], float]:
    """Nine tenths of all values lie within these."""
    values: dict[tuple[str, str], list[float]] = {}
    for stream, attributes in records:
        for name, condition in attributes.conditions:
            if isinstance(condition, NumberRange | DateRange):
                values.setdefault((stream, name), []).append(condition.low)
    found = {}
    for key, every in values.items():
        every.sort()
        found[key] = every[(19 * len(every)) // 20] - every[len(every) // 20]
    return found


def draw_predicate(stream: str, attributes: Attributes, widths: Widths, luck: Random) -> Predicate:
    """A subscription around one record."""
    topics = [pair for pair in attributes.conditions if isinstance(pair[1], Topic)]
    others = [pair for pair in attributes.conditions if not isinstance(pair[1], Topic)]
    kept = [pair for pair in others if luck.random() < _KEPT]
    if len(kept) < 2:
        kept = luck.sample(others, min(2, len(others)))
    fine = [name for name, condition in kept if not isinstance(condition, Words)]
    narrow = luck.choice(fine) if fine else ""
    conditions = {
        name: _around(condition, widths.get((stream, name), 0.0), name == narrow, luck)
        for name, condition in kept
    }
    if not conditions or luck.random() < _TOPIC:
        conditions |= dict(topics)
    return Predicate(tuple(sorted(conditions.items())))


def _around(condition: Condition, width: float, narrow: bool, luck: Random) -> Condition:
    if isinstance(condition, Words):
        return _words(condition, luck)
    share = 10 ** luck.uniform(*(NARROW if narrow else WIDE))
    if isinstance(condition, Box):
        return _box(condition, share, luck)
    if isinstance(condition, NumberRange | DateRange):
        return _span(condition, share * width, narrow, luck)
    return condition


def _words(condition: Words, luck: Random) -> Words:
    if luck.random() < _BEGINNING and len(condition.begins) > 1:
        return Words(condition.begins[: luck.randrange(1, len(condition.begins))], whole=False)
    return condition


def _span(
    condition: NumberRange | DateRange, width: float, narrow: bool, luck: Random
) -> NumberRange | DateRange:
    place = luck.random()
    low, high = condition.low - place * width, condition.low + (1 - place) * width
    if isinstance(condition, DateRange):
        low, high = low // _MINUTE_MS * _MINUTE_MS, -(-high // _MINUTE_MS) * _MINUTE_MS
    else:
        low, high = min(_rounded(low), condition.low), max(_rounded(high), condition.low)
    if narrow or luck.random() >= _ONE_SIDED:
        return type(condition)(low, high)
    if luck.random() < 0.5:
        return type(condition)(low, inf, high_open=True)
    return type(condition)(-inf, high, low_open=True)


def _rounded(value: float) -> float:
    return plain_number(float(f"{value:.7g}"))


def _box(condition: Box, share: float, luck: Random) -> Box:
    height, width = 90 * share, 180 * share
    south, west = condition.south - luck.random() * height, condition.west - luck.random() * width
    return Box(
        min(_degrees(south, 90.0), condition.south),
        min(_degrees(west, 180.0), condition.west),
        max(_degrees(south + height, 90.0), condition.north),
        max(_degrees(west + width, 180.0), condition.east),
    )


def _degrees(value: float, most: float) -> float:
    return plain_number(round(max(-most, min(most, value)), 4))
