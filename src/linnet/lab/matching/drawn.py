"""Records where no stream is given: prices, sensors and posts, with values of falling popularity."""

from __future__ import annotations

from random import Random

from linnet.content.attribute_types.geo_box import Box
from linnet.content.attribute_types.numbers import DateRange, NumberRange, plain_number
from linnet.content.attribute_types.text import TOPIC, Words
from linnet.content.predicate import Attributes, Condition
from linnet.lab.matching.streams import Harvest
from linnet.sim.seeded_random import named_luck

RECORDS = 20_000
_DAY_MS = 86_400_000
_FIRST_DAY, _DAYS = 18_262, 2_000
_SYMBOLS, _TAGS, _CITIES = 500, 200, 100


def draw_records(seed: int, count: int = RECORDS) -> Harvest:
    """So many records; equal seeds give equal ones."""
    luck = named_luck(seed, "matching/records")
    kinds = (("stock", _stock), ("sensor", _sensor), ("post", _post))
    records = []
    for _ in range(count):
        topic, draw = luck.choice(kinds)
        records.append((topic, Attributes(tuple(sorted({topic: TOPIC, **draw(luck)}.items())))))
    return Harvest(tuple(records), (), {})


def _rank(luck: Random, most: int) -> int:
    """A rank whose popularity falls about as 1 over itself."""
    return min(most - 1, int(most ** luck.random()) - 1)


def _number(value: float, digits: int) -> NumberRange:
    rounded = plain_number(round(value, digits))
    return NumberRange(rounded, rounded)


def _stock(luck: Random) -> dict[str, Condition]:
    day = float((_FIRST_DAY + luck.randrange(_DAYS)) * _DAY_MS)
    return {
        "symbol": Words(f"S{_rank(luck, _SYMBOLS):03}"),
        "price": _number(luck.lognormvariate(4.0, 1.0), 2),
        "volume": _number(float(luck.randrange(1, 10_000_000)), 0),
        "day": DateRange(day, day),
    }


def _sensor(luck: Random) -> dict[str, Condition]:
    latitude, longitude = round(luck.gauss(45.0, 8.0), 4), round(luck.gauss(5.0, 12.0), 4)
    return {
        "at": Box(latitude, longitude, latitude, longitude),
        "city": Words(f"city{_rank(luck, _CITIES):02}"),
        "temperature": _number(luck.gauss(12.0, 9.0), 2),
        "humidity": _number(luck.uniform(20.0, 100.0), 1),
    }


def _post(luck: Random) -> dict[str, Condition]:
    time = float(_FIRST_DAY * _DAY_MS + luck.randrange(_DAYS * 1440) * 60_000)
    return {
        "tag": Words(f"tag{_rank(luck, _TAGS):03}"),
        "length": _number(float(int(luck.lognormvariate(4.5, 1.0))), 0),
        "time": DateRange(time, time),
    }
