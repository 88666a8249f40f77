"""What the study of relays says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from linnet.lab.bins import NEVER, quantile, share_never, share_within, total
from linnet.lab.relays.outcomes import (
    EVERY_MODE,
    FIRST_DELIVERY,
    MODES,
    P2P,
    P2P_THESIS,
    RELAYS,
    RETURN_RECEPTION,
)
from linnet.lab.report.parts import Cell, Figure, Grid, Section
from linnet.lab.report.published import Published
from linnet.lab.studies.relays.drawings import (
    PEOPLE,
    empty_plot,
    first_delivery_plot,
    margin_name,
    reception_plot,
    undelivered_plot,
)
from linnet.lab.studies.relays.metrics import FUNNEL, Pool

HOUR = 3_600

Funnel = Mapping[int, tuple[int, int]]
"""Chats and messages that are left after each step of the selection."""
Inverted = Mapping[tuple[str, int], tuple[int, int]]
"""Chats of a population and margin, and those whose empty periods invert."""

SYSTEMS = {P2P: "P2P", P2P_THESIS: "P2P of the thesis", RELAYS: "with relays"}
MEASURES = {
    "undelivered": (FIRST_DELIVERY, "events not delivered to anybody", "share of events"),
    "empty": (RETURN_RECEPTION, "online periods without a reception", "share of periods"),
}


def figures(pool: Pool, published: Published, funnel: Funnel) -> Iterator[Figure]:
    """All numbers, published ones beside them where there are some."""
    yield from _funnel_figures(published, funnel)
    for population in pool.populations():
        for short, (measure, title, unit) in MEASURES.items():
            for margin in pool.margins():
                for mode, system in SYSTEMS.items():
                    yield Figure(
                        id=f"{short}.{mode}.margin{margin}.{population}",
                        title=f"{title}, {system}, {margin_name(margin)}, {PEOPLE[population]}",
                        unit=unit,
                        measured=share_never(pool.bins(population, margin, mode, measure)),
                    )
    if pool.margins() != [0]:
        yield from _beside(pool, published)


def _funnel_figures(published: Published, funnel: Funnel) -> Iterator[Figure]:
    for id, step in (("funnel.chats", 1), ("funnel.seconds", 3), ("funnel.selected", 6)):
        chats, _ = funnel.get(step, (0, 0))
        yield published.figure(id, f"chats left: {FUNNEL[step - 1]}", "chats", chats)


def _beside(pool: Pool, published: Published) -> Iterator[Figure]:
    """Those numbers that the thesis prints, on the chats that its filters select, or all if none are."""
    people = pool.populations()[-1]

    def never(margin: int, mode: str, measure: str) -> float:
        return share_never(pool.bins(people, margin, mode, measure))

    def said(id: str, title: str, unit: str, measured: Cell) -> Figure:
        return published.figure(id, f"{title}, {PEOPLE[people]}", unit, measured)

    events, periods = "share of events", "share of periods"
    yield said("undelivered.p2p.margin1", "undelivered, P2P, margin 1", events, never(1, P2P, FIRST_DELIVERY))
    yield said("undelivered.p2p.margin5", "undelivered, P2P, margin 5", events, never(5, P2P, FIRST_DELIVERY))
    most = max(never(margin, RELAYS, FIRST_DELIVERY) for margin in pool.margins())
    yield said("undelivered.relays.most", "undelivered, with relays, at the worst margin", events, most)
    for mode in (P2P, RELAYS):
        within = share_within(pool.bins(people, 2, mode, FIRST_DELIVERY), 12_000)
        title = f"delivered within 12 s, {SYSTEMS[mode]}, margin 2"
        yield said(f"within12s.{mode}.margin2", title, events, within)
    for mode in (P2P, RELAYS):
        title = f"empty, {SYSTEMS[mode]}, margin 1"
        yield said(f"empty.{mode}.margin1", title, periods, never(1, mode, RETURN_RECEPTION))
    for id, margin, limit in (("return1600ms", 3, 1_600), ("return30s", 5, 30_000)):
        bins = {b: n for b, n in pool.bins(people, margin, RELAYS, RETURN_RECEPTION).items() if b != NEVER}
        unit = "share of non-empty periods"
        title = f"first reception within {limit / 1000:g} s of coming online, with relays, margin {margin}"
        yield said(f"{id}.relays.margin{margin}", title, unit, share_within(bins, limit))


def sections(pool: Pool, funnel: Funnel, inverted: Inverted) -> Iterator[Section]:
    """The parts of the page."""
    yield Section(title="Which chats", grids=(_funnel_grid(funnel),))
    for population in pool.populations():
        yield Section(
            title=PEOPLE[population][0].upper() + PEOPLE[population][1:],
            plots=(
                undelivered_plot(pool, population),
                first_delivery_plot(pool, population),
                empty_plot(pool, population),
                reception_plot(pool, population),
            ),
            grids=(_margin_grid(pool, population, inverted), _held_grid(pool, population)),
        )


def _funnel_grid(funnel: Funnel) -> Grid:
    rows = tuple((name, *funnel.get(step, (0, 0))) for step, name in enumerate(FUNNEL, 1))
    return Grid(title="Selection, step after step", columns=("step", "chats", "messages"), rows=rows)


def _margin_grid(pool: Pool, population: str, inverted: Inverted) -> Grid:
    """Medians are of all events sent; a dash is a median that never came."""
    rows: list[tuple[Cell, ...]] = []
    for margin in pool.margins():
        for mode in MODES:
            delivery = pool.bins(population, margin, mode, FIRST_DELIVERY)
            reception = pool.bins(population, margin, mode, RETURN_RECEPTION)
            median = quantile(delivery, 0.5)
            _, number = inverted.get((population, margin), (0, 0))
            rows.append(
                (
                    margin_name(margin),
                    SYSTEMS[mode],
                    total(delivery),
                    share_never(delivery),
                    None if median is None else median / 1000,
                    total(reception),
                    share_never(reception),
                    number if mode == RELAYS else None,
                )
            )
    return Grid(
        title="By margin",
        columns=(
            "presence",
            "system",
            "events",
            "undelivered",
            "median delivery, s",
            "periods",
            "empty",
            "chats with more empty periods than P2P",
        ),
        rows=tuple(rows),
        note="Medians are over all events sent. The thesis's baseline differs from P2P in what is filled in; "
        "that arrives at the instant of a push and so changes none of these.",
    )


def _held_grid(pool: Pool, population: str) -> Grid:
    margin = pool.margins()[0]
    events = pool.total(population, margin, EVERY_MODE, "events")
    size = pool.total(population, margin, EVERY_MODE, "bytes")
    seconds = pool.total(population, margin, RELAYS, "held_event_s")
    byte_seconds = pool.total(population, margin, RELAYS, "held_byte_s")
    rows: tuple[tuple[Cell, ...], ...] = (
        ("events", events),
        ("bytes", size),
        ("event-hours held by each relay of a room", seconds // HOUR),
        ("megabyte-hours held by each relay of a room", byte_seconds // HOUR // 10**6),
    )
    return Grid(
        title="What relays hold without retention",
        columns=("what", "sum over all chats"),
        rows=rows,
        note="From sending to the end of the chat; a room has one relay below ten members, else two.",
    )
