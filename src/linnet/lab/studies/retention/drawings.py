"""The plots of the study of retention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from linnet.lab.report import plots
from linnet.lab.report.parts import Plot
from linnet.lab.report.plots import Choice
from linnet.lab.studies.relays.drawings import margin_name
from linnet.lab.studies.retention.metrics import ALL, CLASSES, SHORT, Kept, Trade
from linnet.lab.studies.retention.recommending import Recommendation
from linnet.lab.studies.retention.sweep import OUR_DEFAULT, name_of

APART = 2
"""How many times as far right a point must be, so that two names have room."""

_X, _Y = "hours for which a relay holds an event, on average", "owed pairs of event and member served"


def presences_plot(trades: Sequence[Trade]) -> Plot | None:
    """All rooms together, a curve for each presence; what is held is the same for each of them."""
    everywhere = [trade for trade in trades if trade.population == ALL]
    best = max(everywhere, key=lambda trade: trade.nothing.served, default=None)
    curves = {
        margin_name(trade.margin): [
            Choice(kept.hours_per_event, kept.served, names.get(kept.retention, ""))
            for kept in trade.kept
            if kept.hours_per_event > 0
        ]
        for trade in everywhere
        for names in (_names(trade.kept) if trade is best else {},)
    }
    return _drawn(
        curves,
        "Delivery against what is held, all rooms",
        "Each point is a retention, named at the curve that starts uppermost; points above one another hold "
        "the same. A curve that is flat buys nothing by holding more. Where nothing is held there is nothing "
        "to draw.",
    )


def _names(swept: Sequence[Kept]) -> dict[int, str]:
    """Names of retentions, from the longest on; of those that stand close together only the longest."""
    names, right = dict[int, str](), inf
    for kept in reversed(swept):
        if 0 < kept.hours_per_event < right / APART:
            names[kept.retention], right = name_of(kept.retention), kept.hours_per_event
    return names


def classes_plot(trades: Sequence[Trade], advised: Mapping[tuple[str, int], Recommendation]) -> Plot | None:
    """One presence, a curve for each class of rooms, the recommended retention of each named."""
    margin = trades[0].margin
    curves = {
        CLASSES[trade.population]: [
            Choice(kept.hours_per_event, kept.served, found.name if kept is found.kept else "")
            for kept in trade.kept
            if kept.hours_per_event > 0
        ]
        for trade in trades
        if trade.population != ALL
        for found in (advised[trade.population, margin],)
    }
    return _drawn(
        curves,
        f"Delivery against what is held, {margin_name(margin)}",
        "A curve for each class of rooms; the point with a name is the recommended retention. Classes whose "
        "relays need hold nothing have no such point.",
    )


def _drawn(curves: Mapping[str, Sequence[Choice]], title: str, caption: str) -> Plot | None:
    """None if nothing is held anywhere, as in chats that are over within a second."""
    shown = {name: curve for name, curve in curves.items() if curve}
    if not shown:
        return None
    svg = plots.trade_off(shown, title=title, x_label=_X, x_unit="h", y_label=_Y, y_unit="share", log_x=True)
    return Plot(title=title, svg=svg, caption=caption)


def held_plot(found: Sequence[Recommendation]) -> Plot:
    """What the recommended retention of each class holds, beside our default."""
    title = "Event-hours held, of those without a limit"
    groups = {
        SHORT[each.trade.population]: {
            "recommended": each.trade.held(each.kept),
            f"our default, {name_of(OUR_DEFAULT)}": each.trade.held(each.trade.ours),
        }
        for each in found
    }
    svg = plots.bars(groups, title=title, y_label="share of event-hours", x_label="members and pace")
    return Plot(
        title=title,
        svg=svg,
        caption="Rooms that last shorter than a retention are held whole by it: their bars are near 100 %.",
    )
