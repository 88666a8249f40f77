"""The plots of the report."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.lab.report import plots
from linnet.lab.report.parts import Plot
from linnet.lab.report.plots import Line
from linnet.lab.studies.overlay.attacks import WAYS
from linnet.lab.studies.overlay.parameters import EPSILONS, FANOUTS, HASHES, SHARES
from linnet.lab.studies.overlay.view import View
from linnet.lab.studies.overlay.workload import FILTERS


def attacks(view: View) -> Iterator[Plot]:
    """Liars in views over time, a plot for each share of them."""
    for share in SHARES:
        series = []
        for way in WAYS:
            curve = view.outcomes.curve(f"{way}|hub|{share:g}", "lying", "places")
            if curve:
                series.append(Line(label=way, x=list(curve), y=list(curve.values())))
        if series:
            title = f"Liars' share of views, {share:.0%} of nodes lie"
            svg = plots.lines(series, title=title, x_label="round", y_label="share", y_unit="share")
            yield Plot(
                title=title,
                svg=svg,
                caption="Liars answer with liars alone. Plain Cyclon gives in within some rounds; counting "
                "every id and offering one of an answer keeps liars near their fair share.",
            )


def filters(view: View, origin: str) -> Plot:
    """Common topics found over what an attacker gets."""
    series = []
    for hashes in HASHES:
        points = []
        for epsilon in EPSILONS:
            setting = f"{origin}|{hashes}|{epsilon:g}"
            found, attack = (view.outcomes.ratio(FILTERS, setting, each) for each in ("utility", "attack"))
            if found is not None and attack is not None:
                points.append((attack, found))
        if points:
            series.append(Line(label=f"k = {hashes}", x=[x for x, _ in points], y=[y for _, y in points]))
    svg = plots.lines(
        series,
        title=f"What filters find, over what they tell: {origin}",
        x_label="area of the attack",
        y_label="common topics found",
        y_unit="share",
    )
    return Plot(
        title=f"Utility and privacy: {origin}",
        svg=svg,
        caption="Points are epsilon 1, 2, 3, 5, 8 and 15. One hash finds more for the same privacy.",
    )


def hops(view: View) -> Plot:
    """Mean hops over the size of a ring."""
    series = []
    for fanout in FANOUTS:
        found = {nodes: view.hops(nodes, fanout) for nodes in sorted(view.parameters.ring_sizes)}
        points = {nodes: value for nodes, value in found.items() if value is not None}
        series.append(Line(label=f"fan-out {fanout}", x=list(points), y=list(points.values())))
    svg = plots.lines(series, title="Mean hops", x_label="members of the topic", y_label="hops", log_x=True)
    return Plot(title="Hops", svg=svg, caption="They grow with the logarithm of the members.")


def degrees(view: View) -> Iterator[Plot]:
    """Neighbours over subscriptions, if that was run."""
    series = []
    for order in ("id", "hash"):
        found = {each: view.degree(order, each) for each in sorted(view.parameters.growing)}
        points = {each: value for each, value in found.items() if value is not None}
        if points:
            series.append(Line(label=f"places by {order}", x=list(points), y=list(points.values())))
    if not series:
        return
    svg = plots.lines(
        series, title="Neighbours of a node", x_label="subscriptions of a node", y_label="neighbours"
    )
    yield Plot(
        title="Degree",
        svg=svg,
        caption="One link serves all topics that two nodes share; by ids the same neighbours recur.",
    )
