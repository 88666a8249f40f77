"""Strategies for predicates and events, drawn from so few names and values that they often meet."""

from __future__ import annotations

from math import inf

from hypothesis import strategies as st

from linnet.content.attribute_types.geo_box import Box
from linnet.content.attribute_types.numbers import DateRange, NumberRange
from linnet.content.attribute_types.text import TOPIC, Topic, Words
from linnet.content.predicate import Attributes, Condition, Predicate

NUMBERS = (-2.5, 0.0, 1.0, 1.5, 2.0, 3.0, 10.0)
DAY = 86_400_000.0
WORDS = ("", "a", "ab", "abc", "b", 'a"b', "ä\\")
NAMES = ("a", "b", "c", "stock", "ünï-x_1.2")


@st.composite
def spans(draw: st.DrawFn, dates: bool | None = None) -> NumberRange | DateRange:
    """Ranges of numbers or dates, that have something in them."""
    is_date = draw(st.booleans()) if dates is None else dates
    values = [DAY * value for value in NUMBERS] if is_date else list(NUMBERS)
    low, high = sorted(draw(st.tuples(st.sampled_from([-inf, *values]), st.sampled_from([*values, inf]))))
    low_open = low == -inf or (low < high and draw(st.booleans()))
    high_open = high == inf or (low < high and draw(st.booleans()))
    if is_date and low == -inf and high == inf:
        low, low_open = 0.0, False
    return (DateRange if is_date else NumberRange)(low, high, low_open, high_open)


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    """Boxes in a small part of the map; some of them go round it the other way, over 180 degrees."""
    edges = st.tuples(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS))
    (south, north), (west, east) = sorted(draw(edges)), draw(edges)
    return Box(south, west, north, east)


def words() -> st.SearchStrategy[Words]:
    """Texts and beginnings."""
    return st.builds(Words, st.sampled_from(WORDS), st.booleans())


_NUMBER = st.sampled_from(NUMBERS)
_ASKED: dict[type, st.SearchStrategy[Condition]] = {
    Topic: st.just(TOPIC),
    NumberRange: spans(dates=False),
    DateRange: spans(dates=True),
    Words: words(),
    Box: boxes(),
}
_SAID: dict[type, st.SearchStrategy[Condition]] = {
    Topic: st.just(TOPIC),
    NumberRange: _NUMBER.map(lambda value: NumberRange(value, value)),
    DateRange: _NUMBER.map(lambda value: DateRange(DAY * value, DAY * value)),
    Words: st.sampled_from(WORDS).map(Words),
    Box: st.tuples(_NUMBER, _NUMBER).map(lambda at: Box(*at, *at)),
}


def conditions() -> st.SearchStrategy[Condition]:
    """Of every kind."""
    return st.one_of(*_ASKED.values())


def values() -> st.SearchStrategy[Condition]:
    """Of every kind, as events have them."""
    return st.one_of(*_SAID.values())


def predicates(most: int = 3) -> st.SearchStrategy[Predicate]:
    """Predicates with few attributes."""
    names = st.dictionaries(st.sampled_from(NAMES), conditions(), min_size=1, max_size=most)
    return names.map(lambda chosen: Predicate(tuple(sorted(chosen.items(), key=_name))))


def attributes(most: int = 5) -> st.SearchStrategy[Attributes]:
    """Attributes of events."""
    names = st.dictionaries(st.sampled_from(NAMES), values(), min_size=1, max_size=most)
    return names.map(lambda chosen: Attributes(tuple(sorted(chosen.items(), key=_name))))


def _name(item: tuple[str, Condition]) -> str:
    return item[0]


@st.composite
def near(draw: st.DrawFn, predicate: Predicate) -> Predicate:
    """Another predicate that differs from one in a condition, so that the two may be merged."""
    at = draw(st.integers(0, predicate.size - 1))
    name, condition = predicate.conditions[at]
    other = draw(_ASKED[type(condition)])
    changed = list(predicate.conditions)
    changed[at] = (name, other)
    return Predicate(tuple(changed))


@st.composite
def events_of(draw: st.DrawFn, *asked: Predicate) -> Attributes:
    """Events that are likely to be accepted by one of these predicates, or nearly so."""
    chosen = dict(draw(attributes()).conditions)
    for name, condition in draw(st.sampled_from(asked)).conditions:
        chosen[name] = draw(_SAID[type(condition)])
    return Attributes(tuple(sorted(chosen.items(), key=_name)))
