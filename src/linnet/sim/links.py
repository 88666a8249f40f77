"""The model of simulated links: latencies, failures, and capacity.

A link is first in, first out in each direction; two links are independent, so messages that take two ways may
arrive in any order.
"""

from __future__ import annotations

import csv
from importlib.resources import files
from pathlib import Path

from msgspec import Struct

from linnet.core.counts import counted
from linnet.core.errors import ConfigError
from linnet.core.limits import KIB, MIB

_ANYWHERE = "anywhere"


class LatencyTable(Struct, frozen=True):
    """One-way delays in seconds from region to region; not symmetric in general."""

    regions: tuple[str, ...]
    delays: dict[tuple[str, str], float]

    def between(self, origin: str, target: str) -> float:
        """Return the seconds that a message takes from one region to another."""
        return self.delays[origin, target]

    def mean(self) -> float:
        """Return the mean seconds over all pairs of regions, each with itself included."""
        return sum(self.delays.values()) / len(self.delays)


def constant_latency(milliseconds: float) -> LatencyTable:
    """Return a table with one region, where every message takes the same time."""
    return LatencyTable((_ANYWHERE,), {(_ANYWHERE, _ANYWHERE): milliseconds / 1000})


def aws_latency() -> LatencyTable:
    """Return the table of the 16 regions of Amazon Web Services of Juslenius 2021, Table 5.1."""
    return parse_latency(files("linnet.sim").joinpath("data/aws16.csv").read_text(), "aws16.csv")


FORM = (
    "a table is a CSV file with a first line region,A,B and for each region a line such as A,0.1,12.5: "
    "the milliseconds one way from A to A, to B and so on"
)
"""The format of a table, for error messages."""


def named_latency(name: str) -> LatencyTable:
    """Return the table of this name: ``aws``, ``constant:MS``, or the path of a CSV file."""
    if name == "aws":
        return aws_latency()
    if name.startswith("constant:"):
        try:
            return constant_latency(float(name.removeprefix("constant:")))
        except ValueError as error:
            raise ConfigError(f"{name}: not a number of milliseconds") from error
    try:
        return parse_latency(Path(name).read_text(), name)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name}: neither aws, nor constant:MS, nor a table: {error}; {FORM}") from error


def parse_latency(text: str, origin: str) -> LatencyTable:
    """Parse a table from CSV: a header with the regions, then a row of milliseconds for each of them."""
    header, *rows = list(csv.reader(text.splitlines())) or [[]]
    regions = tuple(header[1:])
    if not regions or [row[0] if row else "" for row in rows] != list(regions):
        raise ConfigError(f"{origin}: the rows must be the regions of the header, in its order; {FORM}")
    delays: dict[tuple[str, str], float] = {}
    for row in rows:
        if len(row) != len(header):
            has = f"row {row[0]} has {counted(len(row) - 1, 'value')} for {counted(len(regions), 'region')}"
            raise ConfigError(f"{origin}: {has}; {FORM}")
        for region, cell in zip(regions, row[1:], strict=True):
            delays[row[0], region] = _seconds(cell, f"{origin}: {row[0]} to {region}")
    return LatencyTable(regions, delays)


def _seconds(cell: str, where: str) -> float:
    try:
        value = float(cell)
    except ValueError as error:
        raise ConfigError(f"{where}: {cell!r} is no number; {FORM}") from error
    if not 0 <= value < float("inf"):
        raise ConfigError(f"{where}: {cell} is no delay")
    return value / 1000


class LinkModel(Struct, frozen=True):
    """The behaviour of all links of a network."""

    latency: LatencyTable
    jitter: float = 0.0
    """Seconds that a message may take longer, drawn evenly; messages never overtake within a link."""
    loss: float = 0.0
    """Probability that a single message is lost. Real links lose nothing; machines must survive it."""
    bandwidth: float | None = None
    """Bytes a second in each direction of a link; None: no limit, and no outbox is ever full."""
    outbox_high: int = 1 * MIB
    """Bytes waiting in an outbox above which its node is told that it is congested."""
    outbox_low: int = 256 * KIB
    """Bytes at which the node is told that it drained."""
    outbox_bytes: int = 16 * MIB
    """Bytes above which the link closes with ``slow_peer``."""
    outbox_age: float = 30.0
    """Seconds that a message may wait in an outbox before the link closes with ``slow_peer``."""
    dial_round_trips: float = 2.0
    """Round trips until both ends have keys: one for TCP, one for TLS 1.3. The greetings come on top."""
    dial_timeout: float = 10.0
    """Seconds until an unanswered dial is given up."""

    def dial_time(self, there: float, back: float) -> float:
        """Return the seconds from dialling until the other end has our greeting and counts the link as up."""
        return self.dial_round_trips * (there + back) + there
