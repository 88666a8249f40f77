"""Real streams as events: files that are known by their names, each record with its attributes.

Files are those of public sets, plain or as ``.gz``; names may have something before them
(``vega_stocks.csv``). A column that holds one series for each name is read as that many records.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from msgspec import Struct

from linnet.content.attribute_types.geo_box import Box
from linnet.content.attribute_types.numbers import DateRange, NumberRange, plain_number
from linnet.content.attribute_types.text import TOPIC, Words
from linnet.content.predicate import Attributes, Condition
from linnet.core.errors import BadText
from linnet.lab.errors import LabError

Raw = Mapping[str, Any]
Reading = Callable[[Raw], Condition]
_UNREADABLE = (KeyError, ValueError, TypeError, IndexError, BadText)


def _number(column: str) -> Reading:
    def read(raw: Raw) -> Condition:
        value = plain_number(float(raw[column]))
        return NumberRange(value, value)

    return read


def _moment(found: datetime) -> Condition:
    known = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    milliseconds = float(round(known.timestamp() * 1000))
    return DateRange(milliseconds, milliseconds)


def _date(column: str, form: str = "") -> Reading:
    """A date in this form of `strptime`; without one, as ISO 8601 has it."""

    def read(raw: Raw) -> Condition:
        text = str(raw[column])
        if form:
            return _moment(datetime.strptime(text, form).replace(tzinfo=UTC))
        return _moment(datetime.fromisoformat(text))

    return read


def _ordinal(column: str) -> Reading:
    def read(raw: Raw) -> Condition:
        return _moment(datetime.combine(date.fromordinal(int(raw[column])), datetime.min.time()))

    return read


def _epoch(column: str) -> Reading:
    def read(raw: Raw) -> Condition:
        return DateRange(float(raw[column]), float(raw[column]))

    return read


def _text(column: str) -> Reading:
    return lambda raw: Words(str(raw[column]))


def _is(text: str) -> Reading:
    return lambda raw: Words(text)


def _point(raw: Raw) -> Condition:
    latitude, longitude = plain_number(raw["latitude"]), plain_number(raw["longitude"])
    return Box(latitude, longitude, latitude, longitude)


class Stream(Struct, frozen=True):
    """One file, and what its records become."""

    file: str
    topic: str
    attributes: Mapping[str, Reading]
    series: tuple[str, ...] = ()
    """Columns that are a record each, with ``series`` for the name and ``value`` for the cell."""


_TICKERS = ("AAPL", "AMZN", "IBM", "INTC", "JNJ", "JPM", "KO", "MSFT", "WMT", "XOM")
_POLLSTERS = ("gallup", "ipsos", "morning_consult", "rasmussen", "you_gov")
_SERIES = {"value": _number("value"), "of": _text("series")}

STREAMS = (
    Stream(
        "flights-20k.json",
        "flight",
        {
            "delay": _number("delay"),
            "distance": _number("distance"),
            "from": _text("origin"),
            "to": _text("destination"),
        },
    ),
    Stream(
        "earthquakes.geojson",
        "earthquake",
        {"magnitude": _number("mag"), "depth": _number("depth"), "at": _point, "time": _epoch("time")},
    ),
    Stream(
        "stocks.csv",
        "stock",
        {"symbol": _text("symbol"), "price": _number("price"), "day": _date("date", "%b %d %Y")},
    ),
    Stream("sp500.csv", "return", _SERIES | {"day": _date("date")}, _TICKERS),
    Stream("trump_approval.csv", "approval", _SERIES | {"day": _ordinal("ordinal_date")}, _POLLSTERS),
    Stream(
        "apple.csv",
        "stock",
        {
            "symbol": _is("AAPL"),
            "price": _number("Close"),
            "volume": _number("Volume"),
            "day": _date("Date"),
        },
    ),
    Stream(
        "sp500-2000.csv",
        "index",
        {"price": _number("close"), "volume": _number("volume"), "day": _date("date")},
    ),
    Stream("bitcoin.csv", "bitcoin", {"price": _number("price"), "day": _date("date")}),
    Stream("brent_crude_oil.csv", "oil", {"price": _number("DPB"), "day": _date("day", "%m/%d/%Y")}),
    Stream("occupancy.csv", "room", {f"v{place}": _number(f"V{place}") for place in (1, 2, 3, 4)}),
    Stream(
        "seattle-temps.csv",
        "weather",
        {"city": _is("seattle"), "temperature": _number("temp"), "time": _date("date", "%Y/%m/%d %H:%M")},
    ),
    Stream(
        "sf-temps.csv",
        "weather",
        {"city": _is("sf"), "temperature": _number("temp"), "time": _date("date", "%Y/%m/%d %H:%M:%S")},
    ),
    Stream(
        "seattle-weather.csv",
        "weather",
        {
            "city": _is("seattle"),
            "sky": _text("weather"),
            "temperature": _number("temp_max"),
            "wind": _number("wind"),
        },
    ),
    Stream("water-flow.csv", "water", {"flow": _number("Water flow [l/s]"), "time": _date("Time")}),
)


class Harvest(Struct, frozen=True):
    """All records of a folder."""

    records: tuple[tuple[str, Attributes], ...]
    """Each with the topic of its stream."""
    missing: tuple[str, ...]
    """Files that are not there."""
    unread: dict[str, int]
    """Records that have no such value, by file."""


def read_streams(folder: Path) -> Harvest:
    """Every known stream in a folder or below it; `LabError` if there is none."""
    records: list[tuple[str, Attributes]] = []
    missing: list[str] = []
    unread: dict[str, int] = {}
    for stream in STREAMS:
        path = find(folder, stream.file)
        if path is None:
            missing.append(stream.file)
            continue
        for raw in _split(_rows(path), stream.series):
            found = attributes_of(raw, stream)
            if found is None:
                unread[stream.file] = unread.get(stream.file, 0) + 1
            else:
                records.append((stream.topic, found))
    if not records:
        raise LabError(f"--data: none of {', '.join(missing)} is there with a record that can be read")
    return Harvest(tuple(records), tuple(missing), unread)


def find(folder: Path, name: str) -> Path | None:
    """A file of this name, plain or compressed, perhaps with something and ``_`` before it."""
    for pattern in (name, f"{name}.gz", f"*_{name}", f"*_{name}.gz"):
        for path in sorted(folder.rglob(pattern)):
            if path.is_file():
                return path
    return None


def attributes_of(raw: Raw, stream: Stream) -> Attributes | None:
    """What an event with this record says of itself; None if a value cannot be read."""
    try:
        conditions = {name: reading(raw) for name, reading in stream.attributes.items()}
        return Attributes(tuple(sorted({stream.topic: TOPIC, **conditions}.items())))
    except _UNREADABLE:
        return None


def _split(rows: Iterator[Raw], series: tuple[str, ...]) -> Iterator[Raw]:
    for row in rows:
        if not series:
            yield row
        for name in series:
            yield {**row, "series": name, "value": row.get(name)}


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return TextIOWrapper(gzip.GzipFile(path), encoding="utf-8")
    return path.open(encoding="utf-8")


def _rows(path: Path) -> Iterator[Raw]:
    try:
        with _opened(path) as file:
            if ".csv" in path.suffixes:
                yield from csv.DictReader(file)
            else:
                yield from _items(json.load(file))
    except (OSError, EOFError, UnicodeDecodeError, ValueError, csv.Error) as error:
        raise LabError(f"{path.name}: it cannot be read: {error}") from error


def _items(found: object) -> Iterator[Raw]:
    """The records of a JSON file: a list of them, or features with properties and a place."""
    if isinstance(found, list):
        yield from (item for item in found if isinstance(item, dict))
        return
    for feature in found.get("features", ()) if isinstance(found, dict) else ():
        longitude, latitude, depth = feature["geometry"]["coordinates"]
        yield {**feature["properties"], "latitude": latitude, "longitude": longitude, "depth": depth}
