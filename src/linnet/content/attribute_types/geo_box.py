"""Boxes on the map, in degrees, bounds included; a place is a box of a single point.

A box whose western edge is the greater number crosses the line at 180 degrees: ``at{-20,170,-10,-175}``
lies on both sides of it. It splits into two boxes that do not cross the line, and other nodes are sent these.
"""

from __future__ import annotations

from msgspec import Struct

from linnet.content.attribute_types.numbers import number_text, plain_number, read_number
from linnet.content.attribute_types.text import Reader
from linnet.core.errors import BadText

_LATITUDE = 90.0
_LONGITUDE = 180.0


class Box(Struct, frozen=True, gc=False):
    """``at{36.9,-9.6,42.2,-6.1}``: from south and west to north and east; a place is ``at={38.7,-9.1}``."""

    south: float
    west: float
    north: float
    east: float

    def __post_init__(self) -> None:
        if not -_LATITUDE <= self.south <= self.north <= _LATITUDE:
            raise BadText("latitudes are from -90 to 90, south first")
        if not all(-_LONGITUDE <= edge <= _LONGITUDE for edge in (self.west, self.east)):
            raise BadText("longitudes are from -180 to 180")
        if any(plain_number(edge) != edge for edge in (self.south, self.west, self.north, self.east)):
            raise BadText("more digits than can be written")

    @property
    def exact(self) -> bool:
        """Whether it is a single point, such as an event has."""
        return self.south == self.north and self.west == self.east

    @property
    def text(self) -> str:
        """The condition as it is written after the attribute's name."""
        if self.exact:
            return f"={{{number_text(self.south)},{number_text(self.west)}}}"
        edges = (self.south, self.west, self.north, self.east)
        return "{" + ",".join(map(number_text, edges)) + "}"

    @property
    def wide(self) -> tuple[tuple[float, float], ...]:
        """The longitudes from west to east: one or two ranges that do not cross the line at 180 degrees."""
        if self.west <= self.east:
            return ((self.west, self.east),)
        return ((self.west, _LONGITUDE), (-_LONGITUDE, self.east))

    @property
    def pieces(self) -> tuple[Box, ...]:
        """The one or two boxes that make it up; neither crosses the line at 180 degrees."""
        if self.west <= self.east:
            return (self,)
        return tuple(Box(self.south, west, self.north, east) for west, east in self.wide)

    def covers(self, other: Box) -> bool:
        """Return whether it accepts every place that the other accepts."""
        if not (self.south <= other.south and other.north <= self.north):
            return False
        if self.west <= self.east and other.west <= other.east:
            return self.west <= other.west and other.east <= self.east
        return all(
            any(west <= first and last <= east for west, east in self.wide) for first, last in other.wide
        )

    def merged(self, other: Box) -> Box | None:
        """Return the box that covers both exactly, if one holds the other or they adjoin; None otherwise."""
        if self.covers(other):
            return self
        if other.covers(self):
            return other
        high = (self.south, self.north) == (other.south, other.north)
        wide = (self.west, self.east) == (other.west, other.east)
        apart = self.west > self.east or other.west > other.east
        if (high and not apart and max(self.west, other.west) <= min(self.east, other.east)) or (
            wide and max(self.south, other.south) <= min(self.north, other.north)
        ):
            west, east = (self.west, self.east) if wide else _both(self, other)
            return Box(min(self.south, other.south), west, max(self.north, other.north), east)
        return None


def _both(one: Box, other: Box) -> tuple[float, float]:
    return min(one.west, other.west), max(one.east, other.east)


def read_box(reader: Reader) -> Box:
    """Read four edges in braces; the western edge is the greater number if the box crosses 180 degrees."""
    reader.need("{", "{")
    south = _edge(reader, "the southern edge", -_LATITUDE, _LATITUDE)
    reader.need(",", "a comma and the western edge")
    west = _edge(reader, "the western edge", -_LONGITUDE, _LONGITUDE)
    reader.need(",", "a comma and the northern edge")
    north = _edge(reader, "the northern edge, not south of the southern one", south, _LATITUDE)
    reader.need(",", "a comma and the eastern edge")
    east = _edge(reader, "the eastern edge", -_LONGITUDE, _LONGITUDE)
    reader.need("}", "}")
    return Box(south, west, north, east)


def read_point(reader: Reader) -> Box:
    """Read latitude and longitude in braces."""
    reader.need("{", "{")
    latitude = _edge(reader, "a latitude", -_LATITUDE, _LATITUDE)
    reader.need(",", "a comma and the longitude")
    longitude = _edge(reader, "a longitude", -_LONGITUDE, _LONGITUDE)
    reader.need("}", "}")
    return Box(latitude, longitude, latitude, longitude)


def _edge(reader: Reader, what: str, least: float, most: float) -> float:
    reader.peek()
    at = reader.at
    edge = read_number(reader)
    if not least <= edge <= most:
        reader.fail(f"{what}, from {number_text(least)} to {number_text(most)}", at)
    return edge
