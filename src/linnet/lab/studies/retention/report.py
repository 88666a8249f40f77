"""What the study of retention says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linnet.lab.report.parts import Cell, Figure, Section
from linnet.lab.report.published import Published
from linnet.lab.studies.relays.drawings import margin_name
from linnet.lab.studies.retention.drawings import classes_plot, held_plot, presences_plot
from linnet.lab.studies.retention.grids import (
    OURS,
    presences_grid,
    recommended_grid,
    relays_grid,
    rooms_grid,
    sweep_grid,
)
from linnet.lab.studies.retention.metrics import ALL, CLASSES, Trade
from linnet.lab.studies.retention.parameters import RetentionParameters
from linnet.lab.studies.retention.recommending import Advised, Recommendation, deciding, percent
from linnet.lab.studies.retention.sweep import OUR_DEFAULT


def figures(trades: Sequence[Trade], advised: Advised, published: Published) -> Iterator[Figure]:
    """The recommendations and what they come to; all other numbers stand in tables."""
    decides = deciding([trade.margin for trade in trades if trade.population == ALL])
    all_rooms = advised[ALL, decides]
    title = f"recommended retention, all rooms, {margin_name(decides)}"
    yield published.figure("recommended.all", title, "time", all_rooms.name)
    for (population, margin), found in advised.items():
        at, name = f"{population}.margin{margin}", f"{CLASSES[population]}, {margin_name(margin)}"
        trade, kept, share = found.trade, found.kept, found.trade.of_unlimited(found.kept)
        values: dict[str, tuple[str, str, Cell]] = {
            "recommended": ("recommended retention", "time", found.name),
            "served": (f"owed pairs served with {found.name}", "share of pairs", kept.served),
            "of-unlimited": (f"owed pairs served with {found.name}", "of unlimited", share),
            "held": (f"event-hours held with {found.name}", "of unlimited", trade.held(kept)),
            "undelivered": (f"undelivered with {found.name}", "share of events", kept.undelivered_share),
            "default.of-unlimited": (f"owed pairs served with {OURS}", "of unlimited", _ours(trade)),
            "default.held": (f"event-hours held with {OURS}", "of unlimited", trade.held(trade.ours)),
        }
        for id, (what, unit, measured) in values.items():
            yield Figure(id=f"{id}.{at}", title=f"{what}, {name}", unit=unit, measured=measured)


def _ours(trade: Trade) -> float:
    return trade.of_unlimited(trade.ours)


def sections(
    trades: Sequence[Trade], advised: Advised, parameters: RetentionParameters, left_out: int
) -> Iterator[Section]:
    """The parts of the page."""
    margins = sorted({trade.margin for trade in trades})
    decides = deciding(margins)
    decided = [found for (_, margin), found in advised.items() if margin == decides]
    yield _recommended(decided, advised, margins, parameters)
    yield Section(title="Which rooms", grids=(rooms_grid(decided, parameters, left_out),))
    yield _relays_section(decided, parameters)
    overview = presences_plot(trades)
    yield Section(title="All rooms, by presence", plots=(overview,) if overview else ())
    for margin in margins:
        here = [trade for trade in trades if trade.margin == margin]
        plot = classes_plot(here, advised)
        yield Section(
            title=f"Classes of rooms, {margin_name(margin)}",
            plots=(plot,) if plot else (),
            grids=(sweep_grid(here),),
        )


def _recommended(
    decided: Sequence[Recommendation],
    advised: Advised,
    margins: Sequence[int],
    parameters: RetentionParameters,
) -> Section:
    decides = decided[0].trade.margin
    why = (
        "phones, which is presence that was measured; as their traces are of one week and repeated, nobody "
        "stays away for longer, and more than 7 d is never needed"
        if decides == 0
        else f"{margin_name(decides)}, the middle one: with the shortest, people come only to speak; with "
        "the longest, they are online through the longest silence and hardly need relays"
    )
    return Section(
        title="Recommended retention",
        text=(
            "The shortest retention of the sweep at which relays serve at least "
            f"{percent(parameters.served)} of the pairs of event and member that they owe and would "
            "serve without a limit. A pair is owed if its member was online before the event was sent or "
            "when it was: who comes for the first time later wants the history of the room, which its "
            f"members have. It is read at {why}.",
            f"Where a room has decided nothing, a relay of this project keeps events for {OURS}. "
            + _beside_ours(decided),
        ),
        plots=(held_plot(decided),),
        grids=(recommended_grid(decided), presences_grid(advised, margins)),
    )


def _beside_ours(decided: Sequence[Recommendation]) -> str:
    shorter = [CLASSES[each.trade.population] for each in decided if each.kept.retention < OUR_DEFAULT]
    longer = [CLASSES[each.trade.population] for each in decided if each.kept.retention > OUR_DEFAULT]
    told = []
    if shorter:
        told.append(f"Less is enough for: {'; '.join(shorter)}.")
    if longer:
        told.append(f"More is needed for: {'; '.join(longer)}.")
    return " ".join(told) or "That is what is recommended for every class."


def _relays_section(decided: Sequence[Recommendation], parameters: RetentionParameters) -> Section:
    return Section(
        title="How many relays",
        text=(
            "Relays are always there, and all relays of a room hold the same. What is delivered is therefore "
            "the same with one as with three; what differs is how much is held in sum, and how many people "
            "each relay has to do with. Without relays an event reaches who is online at its sending, and "
            "others when they meet its sender; only the first of these are pairs here.",
        ),
        grids=(relays_grid(decided, parameters.relays),),
    )
