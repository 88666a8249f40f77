"""The plots of the study."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.lab.report import plots
from linnet.lab.report.parts import Plot
from linnet.lab.report.plots import Line
from linnet.lab.studies.streams.figures import printed_sizes
from linnet.lab.studies.streams.graphs import GROWN, STATIC
from linnet.lab.studies.streams.metrics import mean_bin, redundancy, shares
from linnet.lab.studies.streams.parameters import COUNTER, HELD, NAIVE, PLAIN
from linnet.lab.studies.streams.randomness import Randomness
from linnet.lab.studies.streams.view import NAMES, View
from linnet.sim.streams.shortest_paths import diameter_bounds

_BOUNDED = (32, 64, 128, 256, 512, 1024, 2048, 6400, 10_000, 100_000)
_PUBLISHED = {COUNTER: "WebRTC, published", NAIVE: "WebSocket, published"}


def delays(view: View) -> Plot:
    """Figure 5.7: mean delay over size."""
    series = [_over_sizes(view, mode) for mode in view.modes]
    series += _printed(view, "delay")
    svg = plots.lines(
        series,
        title="Mean message delay",
        x_label="nodes",
        y_label="mean delay",
        y_unit="ms",
        log_x=True,
        note="Bands: least and greatest mean of all repeats.",
    )
    caption = (
        "Delay grows with the logarithm of the size. Overlays with near links, wanted or not, are faster."
    )
    return Plot(title="Figure 5.7: mean delay", svg=svg, caption=caption)


def _over_sizes(view: View, mode: str) -> Line:
    spreads = [view.outcomes.delay(view.key(mode, size)) for size in view.sizes(mode)]
    return Line(
        label=NAMES[mode],
        x=view.sizes(mode),
        y=[spread.mean for spread in spreads],
        low=[spread.lowest for spread in spreads],
        high=[spread.highest for spread in spreads],
    )


def _printed(view: View, what: str) -> list[Line]:
    sizes = printed_sizes(view)
    return [
        Line(
            label=label,
            x=sizes,
            y=[view.published.number(f"{what}.{mode}.{size}") for size in sizes],
            published=True,
            like=NAMES[mode],
        )
        for mode, label in _PUBLISHED.items()
        if mode in view.modes and sizes
    ]


def accuracy(view: View) -> Plot:
    """Figure 5.8: measured against estimated."""
    clouds = {}
    for mode in view.modes:
        keys = [view.key(mode, size) for size in view.sizes(mode)]
        runs = [run for key in keys for run in view.outcomes.totals[key]]
        estimated = [run["path_delay"] / run["paths"] / 1000 for run in runs]
        clouds[NAMES[mode]] = (estimated, [run["delay"] / run["receipts"] / 1000 for run in runs])
    svg = plots.scatter(
        clouds,
        title="Measured against estimated delay",
        x_label="mean shortest path from every node",
        y_label="mean delay of the messages sent",
        x_unit="ms",
        y_unit="ms",
        diagonal=True,
    )
    caption = "Each mark is a run. What lies off the line comes from which nodes happened to publish."
    return Plot(title="Figure 5.8: accuracy of the estimate", svg=svg, caption=caption)


def penalty(view: View) -> Plot:
    """Figure 5.9: RDP."""
    series = [
        Line(label=NAMES[mode], x=view.sizes(mode), y=[view.rdp(mode, size) for size in view.sizes(mode)])
        for mode in view.modes
    ]
    svg = plots.lines(
        [*series, *_printed(view, "rdp")],
        title="Relative delay penalty",
        x_label="nodes",
        y_label="delay by that of direct sending",
        log_x=True,
    )
    caption = "How many times longer a message takes over the overlay than if it were sent directly."
    return Plot(title="Figure 5.9: relative delay penalty", svg=svg, caption=caption)


def distribution(view: View) -> Plot:
    """Figure 5.6: delays at the largest size."""
    size = view.largest
    series = {
        NAMES[mode]: shares(view.outcomes.pool(view.key(mode, size), "delay_ms")) for mode in view.modes
    }
    svg = plots.ecdf(
        series,
        title=f"Delays at {size} nodes",
        x_label="delay",
        log_x=False,
        note="Over all receipts of all repeats.",
    )
    caption = "The share of receipts that came within a time; the curve further left is the faster overlay."
    return Plot(title="Figure 5.6: distribution of delays", svg=svg, caption=caption)


def hops(view: View) -> Plot:
    """Links that messages crossed."""
    series = []
    for mode in view.modes:
        pools = [view.outcomes.pool(view.key(mode, size), "hops") for size in view.sizes(mode)]
        series.append(
            Line(label=f"{NAMES[mode]}, mean", x=view.sizes(mode), y=[mean_bin(pool) for pool in pools])
        )
        series.append(Line(label=f"{NAMES[mode]}, most", x=view.sizes(mode), y=[max(pool) for pool in pools]))
    svg = plots.lines(series, title="Links crossed", x_label="nodes", y_label="links", log_x=True)
    caption = "Fast paths are not short: links inside a region cost next to nothing, and long paths are "
    "made of them."
    return Plot(title="Hops", svg=svg, caption=caption)


def duplicates(view: View) -> Iterator[Plot]:
    """Figure 5.4: redundancy over degree."""
    size, degrees = view.parameters.redundancy_size, sorted(view.parameters.degrees)
    if not degrees or not view.outcomes.has(PLAIN, size, degrees[0]):
        return
    series = [
        Line(
            label=label,
            x=degrees,
            y=[redundancy(view.outcomes, (mode, size, degree)).mean for degree in degrees],
        )
        for mode, label in ((PLAIN, "plain flooding"), (HELD, "held back for 50 ms"))
    ]
    series.append(Line(label="d - 2", x=degrees, y=[degree - 2 for degree in degrees]))
    svg = plots.lines(
        series, title="Duplicates", x_label="degree", y_label="duplicates of a message at a node"
    )
    caption = (
        "Duplicates grow by one with each neighbour. Plain flooding lies just above d - 2; only who holds a "
        "message "
        "back, and so skips those that send it meanwhile, gets below."
    )
    yield Plot(title=f"Figure 5.4: redundancy at {size} nodes", svg=svg, caption=caption)


def diameters(view: View) -> Plot:
    """Figure 5.2: bounds on the diameter, and diameters of graphs."""
    degree = view.parameters.degree
    bounds = [diameter_bounds(size, degree) for size in _BOUNDED]
    series = [
        Line(label="upper bound", x=_BOUNDED, y=[upper for _, upper in bounds]),
        Line(label="lower bound", x=_BOUNDED, y=[lower for lower, _ in bounds]),
    ]
    for kind in (GROWN, STATIC):
        sizes = view.sizes(kind)
        largest = [
            max(run["diameter"] for run in view.outcomes.totals[view.key(kind, size)]) for size in sizes
        ]
        if sizes:
            series.append(Line(label=f"{NAMES[kind]}, largest seen", x=sizes, y=largest))
    svg = plots.lines(
        series, title=f"Diameter at degree {degree}", x_label="nodes", y_label="links", log_x=True
    )
    caption = "Wormald's bounds for random regular graphs, and the diameters of graphs that were built."
    return Plot(title="Figure 5.2: diameter", svg=svg, caption=caption)


def pairs(seen: Randomness) -> Plot:
    """Figure 5.1: how often each pair is linked."""
    svg = plots.matrix(
        seen.counts,
        title="How often each pair of joiners is linked",
        value_label="graphs",
        x_label="joined as number",
        y_label="joined as number",
    )
    caption = "Even noise means that no pair is preferred; the diagonal is empty."
    return Plot(title="Figure 5.1: randomness of pairs", svg=svg, caption=caption)


def growth(view: View) -> Iterator[Plot]:
    """The line through the runs, and graphs beyond them."""
    fit, sampled = view.growth(COUNTER), view.sampled()
    if fit is None:
        return
    far = sorted({*view.sizes(COUNTER), 6400, 10_000, *sampled})
    series = [
        _over_sizes(view, COUNTER),
        Line(label="line through them", x=far, y=[fit.at(size) for size in far]),
    ]
    if sampled:
        series.append(
            Line(label="shortest paths in larger graphs", x=list(sampled), y=list(sampled.values()))
        )
    svg = plots.lines(series, title="Growth", x_label="nodes", y_label="mean delay", y_unit="ms", log_x=True)
    caption = "A straight line here is growth with the logarithm of the size."
    yield Plot(title="Growth", svg=svg, caption=caption)
