"""What is to be reached, and whether it was. Ratios are of medians."""

from __future__ import annotations

from collections.abc import Iterable

from bench import channel, groups, intersections, network, place_members, places, rooms, simulator
from bench.fleet import EIGHT, ONE, Layout
from bench.results import Comparison, Figures, Measure

BURST_SHARE = {ONE.name: 25.0, EIGHT.name: 30.0}
"""Percent of the coalesced ceiling."""

SYNCS = 3
"""Syncs that the way of an event may take where both ends have a store."""


def compare(measures: Iterable[Measure]) -> list[Comparison]:
    """Every target whose figures were measured."""
    figures = Figures(measures)
    found: list[Comparison | None] = [
        _absolute("simulator: messages handled a second and core", figures),
        *_throughputs(figures, ONE),
        *_throughputs(figures, EIGHT),
        *_latencies(figures),
        *_rooms(figures),
        *_places(figures),
        *_groups(figures),
        *_intersections(figures),
    ]
    return [each for each in found if each is not None]


def _absolute(name: str, figures: Figures) -> Comparison | None:
    handled = figures.get(simulator.SECTION, simulator.HANDLED)
    return None if handled is None else Comparison(name, handled, 100_000.0, "1/s", at_least=True)


def _throughputs(figures: Figures, layout: Layout) -> list[Comparison | None]:
    def ours(how: str) -> float | None:
        return figures.get(network.SECTION, network.name_of(layout, how, network.NO_STORE))

    def ceiling(how: str) -> float | None:
        return figures.get(network.SECTION, network.ceiling_name(layout, how))

    bursts = ours(network.IN_BURSTS)
    alone = ours(network.ONE_BY_ONE)
    checks = figures.get(network.SECTION, network.CHECKS)
    name = layout.name
    return [
        _share(f"{name}, one by one / signature checks", alone, checks, 60.0),
        _share(
            f"{name}, bursts / coalesced TLS", bursts, ceiling(network.COALESCED), BURST_SHARE[layout.name]
        ),
        _share(f"{name}, bursts / uncoalesced TLS", bursts, ceiling(network.UNCOALESCED), 100.0),
    ]


def _share(name: str, value: float | None, of: float | None, percent: float) -> Comparison | None:
    if value is None or not of:
        return None
    return Comparison(name, 100.0 * value / of, percent, "%", at_least=True)


def _rooms(figures: Figures) -> list[Comparison | None]:
    taken, checks = figures.get(rooms.SECTION, rooms.INGEST), figures.get(rooms.SECTION, rooms.CHECKS)
    early, late = figures.get(rooms.SECTION, rooms.EARLY), figures.get(rooms.SECTION, rooms.LATE)
    ratio = None if not early or late is None else late / early
    return [
        _share("rooms: durable relay / signature checks", taken, checks, 30.0),
        None if ratio is None else Comparison("rooms: cost at the end", ratio, 2.0, "x", at_least=False),
    ]


def _places(figures: Figures) -> list[Comparison | None]:
    def get(name: str) -> float | None:
        return figures.get(places.SECTION, name)

    small, many, checks = places.SMALL, places.MANY, get(places.CHECKS)
    one, fifty = get(places.name_of(1, small)), get(places.name_of(many, small))
    tests = figures.get(channel.SECTION, place_members.TESTS)
    query = figures.get(channel.SECTION, place_members.QUERY)
    return [
        _share("places: host → 1 / stream one by one", one, get(places.STREAM), 50.0),
        _share("places: host → 1 / signature checks", one, checks, 30.0),
        _share(f"places: host → {many} / signature checks", fifty, checks, 30.0),
        *(
            _share(
                f"places: host → {guests}, bytes / bare TLS",
                get(places.megabytes_name(guests)),
                get(places.bare_megabytes_name(guests)),
                25.0,
            )
            for guests in (1, many)
        ),
        _share("channel: membership tests / SQLite queries", tests, query, 200.0),
    ]


def _groups(figures: Figures) -> list[Comparison | None]:
    def ratio(name: str, above: str, below: str, most: float) -> Comparison | None:
        value, of = figures.get(groups.SECTION, above), figures.get(groups.SECTION, below)
        return None if value is None or not of else Comparison(name, value / of, most, "x", at_least=False)

    return [
        ratio("groups: update / sender keys renewed, time", groups.UPDATE, groups.REKEY, 1.0),
        ratio("groups: update / sender keys renewed, bytes", groups.UPDATE_BYTES, groups.REKEY_BYTES, 0.25),
        ratio(
            f"groups: sender of {groups.MANY} / of {groups.MEMBERS}", groups.MANY_SENT, groups.FEW_SENT, 5.0
        ),
        ratio("groups: bare cipher / sealing", groups.BARE_SEAL, groups.SEAL, 15.0),
        ratio("groups: bare cipher / opening", groups.BARE_OPEN, groups.OPEN, 15.0),
    ]


def _intersections(figures: Figures) -> list[Comparison | None]:
    return [
        _share(
            f"intersections: {topics} topics / bare multiplications",
            figures.get(intersections.SECTION, intersections.name_of(topics)),
            figures.get(intersections.SECTION, intersections.ceiling_name(topics)),
            60.0,
        )
        for topics in (16, 64, 256)
    ]


def _latencies(figures: Figures) -> list[Comparison | None]:
    plain = figures.get(network.LATENCY, f"p50, {network.NO_STORE}")
    stored = figures.get(network.LATENCY, f"p50, {network.SQLITE}")
    sync = figures.get(network.LATENCY, network.SYNC)
    return [
        None if plain is None else Comparison("latency p50, no store", plain, 1.0, "ms", at_least=False),
        None
        if stored is None or sync is None
        else Comparison("latency p50, SQLite", stored, 1.0 + SYNCS * sync, "ms", at_least=False),
    ]
