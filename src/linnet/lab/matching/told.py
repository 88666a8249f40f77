"""What is said of matching at scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from linnet.lab.matching.parameters import MatchParameters
from linnet.lab.report import plots
from linnet.lab.report.parts import Cell, Check, Figure, Grid, Plot, Report, Section, StageCost

MATCHER = ("homes", "placed", "matches")
"""The stages of the matcher."""
EXTRAPOLATED = "extrapolated, not run"
ABSTRACT = (
    "Which subscriptions accept which events, for a whole day of both at once? A plain join compares every "
    "event with every predicate. Here a predicate lives at its rarest attribute, in a piece of values, and "
    "an event goes to the pieces of its own values: the two meet once, and no piece has all predicates.",
    "Each piece is searched by the index that nodes use. The same index alone, over all predicates, says "
    "what a sample of events must come to; a plain join says so for all events of a small size.",
)


class Beside(Struct, frozen=True):
    """A plain join, and the matcher on the same."""

    size: int
    small: int
    pairs: int
    wrong: int


class Found(Struct, frozen=True):
    """What came of it."""

    records: int
    missing: tuple[str, ...]
    unread: dict[str, int]
    pairs: int
    pieces: int
    placed: int
    largest: int
    event_copies: float
    sampled: int
    sampled_pairs: int
    wrong: int
    beside: Beside | None


def report_of(parameters: MatchParameters, found: Found, costs: Sequence[StageCost]) -> Report:
    """The report."""
    seconds = {cost.name: cost.seconds for cost in costs}
    told = {name: getattr(parameters, name) for name in parameters.__struct_fields__ if name != "data"}
    return Report(
        study="match",
        title="Matching events and subscriptions at scale",
        abstract=ABSTRACT,
        parameters={"data": "given" if parameters.data else "none", **told},
        figures=tuple(figures(parameters, found, seconds)),
        checks=tuple(checks(parameters, found)),
        sections=tuple(sections(parameters, found, seconds)),
        stages=tuple(costs),
        quarantined={f"no such value in {name}": count for name, count in found.unread.items()},
    )


def matcher_seconds(seconds: dict[str, float], prefix: str = "") -> float:
    """What the matcher took: to find homes, to place predicates, to match."""
    return sum(seconds.get(f"{prefix}{name}", 0.0) for name in MATCHER)


def plain_seconds(beside: Beside, seconds: dict[str, float], pairs: int) -> float:
    """What a plain join of so many pairs would take.

    By the difference of two sizes, so that what Spark takes to start is not multiplied.
    """
    more = beside.size**2 - beside.small**2
    rate = max(0.0, seconds["plain"] - seconds["half-plain"]) / more if more else 0.0
    return seconds["plain"] + rate * max(0, pairs - beside.size**2)


def figures(parameters: MatchParameters, found: Found, seconds: dict[str, float]) -> Iterator[Figure]:
    """All of them."""
    events, predicates = parameters.events, parameters.subscriptions
    took = matcher_seconds(seconds)
    yield Figure(id="pairs", title="pairs that match", unit="pairs", measured=found.pairs)
    each = round(found.pairs / events, 3)
    yield Figure(id="pairs.each", title="subscriptions that an event matches", unit="", measured=each)
    yield Figure(id="pieces", title="pieces", unit="pieces", measured=found.pieces)
    yield Figure(
        id="pieces.largest",
        title="predicates of the largest piece",
        unit="predicates",
        measured=found.largest,
        note=f"{found.largest / predicates:.2%} of all.",
    )
    yield Figure(
        id="copies.predicate",
        title="pieces of a predicate, mean",
        unit="pieces",
        measured=round(found.placed / predicates, 3),
    )
    yield Figure(
        id="copies.event",
        title="pieces that an event goes to, mean",
        unit="pieces",
        measured=round(found.event_copies, 3),
        note=f"Of {found.sampled} events.",
    )
    yield Figure(id="matcher.seconds", title="the matcher, all of it", unit="s", measured=round(took, 2))
    rate = round(events / took) if took else None
    yield Figure(id="matcher.rate", title="events matched in a second", unit="events/s", measured=rate)
    if found.beside is not None:
        yield from _beside(parameters, found.beside, seconds)


def _beside(parameters: MatchParameters, beside: Beside, seconds: dict[str, float]) -> Iterator[Figure]:
    size = f"{beside.size:,} by {beside.size:,}"
    yield Figure(
        id="plain.seconds", title=f"a plain join of {size}", unit="s", measured=round(seconds["plain"], 2)
    )
    few = round(matcher_seconds(seconds, "few-"), 2)
    yield Figure(id="plain.matcher", title=f"the matcher on the same {size}", unit="s", measured=few)
    whole = plain_seconds(beside, seconds, parameters.events * parameters.subscriptions)
    yield Figure(
        id="plain.extrapolated",
        title=f"a plain join of {parameters.events:,} by {parameters.subscriptions:,}, {EXTRAPOLATED}",
        unit="s",
        measured=round(whole),
        note=f"By what {beside.size:,} take longer than {beside.small:,}: it grows with both numbers.",
    )


def checks(parameters: MatchParameters, found: Found) -> Iterator[Check]:
    """What must hold."""
    yield Check(
        id="equal.index",
        says="the matches of a sample of events are those of the shipped index over all predicates",
        ok=found.wrong == 0 and found.sampled_pairs > 0,
        detail=f"{found.sampled} events, {found.sampled_pairs:,} pairs, {found.wrong:,} differ",
    )
    if found.beside is not None:
        yield Check(
            id="equal.plain",
            says="the matches of the small size are those of a plain join",
            ok=found.beside.wrong == 0 and found.beside.pairs > 0,
            detail=f"{found.beside.pairs:,} pairs, {found.beside.wrong:,} differ",
        )
    yield Check(
        id="pieces.parted",
        says="no piece has all predicates, unless all fit into one",
        ok=found.largest < parameters.subscriptions or parameters.subscriptions <= parameters.capacity,
        detail=f"{found.largest:,} of {parameters.subscriptions:,}",
    )


def sections(parameters: MatchParameters, found: Found, seconds: dict[str, float]) -> Iterator[Section]:
    """The parts of the page."""
    origin = f"{found.records:,} records" + ("" if parameters.data else ", drawn: no stream was given")
    missing = (f"Streams that were not found: {', '.join(found.missing)}.",) if found.missing else ()
    every = f"{parameters.events:,} by {parameters.subscriptions:,}"
    took = matcher_seconds(seconds)
    rows: list[tuple[Cell, ...]] = [("matcher", every, round(took, 2), "run")]
    bars: dict[str, dict[str, float | None]] = {}
    if found.beside is not None:
        beside, few = found.beside, matcher_seconds(seconds, "few-")
        size = f"{beside.size:,} by {beside.size:,}"
        rows.append(("matcher", size, round(few, 2), "run"))
        rows.append(("plain join", size, round(seconds["plain"], 2), "run"))
        whole = plain_seconds(beside, seconds, parameters.events * parameters.subscriptions)
        rows.append(("plain join", every, round(whole), EXTRAPOLATED))
        bars = {
            size: {"matcher": max(few, 0.01), "plain join": max(seconds["plain"], 0.01)},
            every: {"matcher": max(took, 0.01), "plain join": max(whole, 0.01)},
        }
    grid = Grid(title="Time", columns=("way", "events by subscriptions", "s", ""), rows=tuple(rows))
    plot = _plot(bars) if bars else ()
    yield Section(title="Matching", text=(f"{origin}.", *missing), plots=plot, grids=(grid,))


def _plot(bars: dict[str, dict[str, float | None]]) -> tuple[Plot, ...]:
    title = "Seconds that matching takes"
    caption = f"The plain join of the larger size is {EXTRAPOLATED}."
    svg = plots.bars(bars, title=title, y_label="time", unit="s", log_y=True, note=caption)
    return (Plot(title=title, svg=svg, caption=caption),)
