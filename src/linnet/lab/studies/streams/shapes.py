"""Tables about the overlays themselves: shape, control traffic, redundancy, graphs without nodes."""

from __future__ import annotations

from linnet.lab.report.parts import Cell, Grid
from linnet.lab.studies.streams.graphs import GROWN, KINDS
from linnet.lab.studies.streams.metrics import redundancy
from linnet.lab.studies.streams.parameters import AT_ONCE, HELD, LIVE, MEASURED_AT, PLAIN
from linnet.lab.studies.streams.tables import short
from linnet.lab.studies.streams.view import NAMES, View
from linnet.sim.streams.shortest_paths import diameter_bounds


def overlays(view: View) -> Grid:
    """Regularity, and whether near nodes are preferred."""
    rows: list[tuple[Cell, ...]] = []
    for mode in (*view.modes, AT_ONCE):
        for size in view.sizes(mode):
            key = view.key(mode, size)
            degrees = view.outcomes.pool(key, "degrees")
            wanted = min(view.parameters.degree, size - 1)
            rows.append(
                (
                    NAMES[mode],
                    size,
                    short(100 * degrees.get(wanted, 0) / sum(degrees.values()), 2),
                    f"{min(degrees)}-{max(degrees)}",
                    short(100 * view.outcomes.ratio(key, "near_links", "links"), 2),
                    short(100 * _even_share(view, size), 2),
                    short(view.outcomes.ratio(key, "link_delay", "links", 1e-3)),
                    short(view.outcomes.ratio(key, "pair_delay", "all_pairs", 1e-3)),
                    sum(run["one_sided"] for run in view.outcomes.totals[key]),
                )
            )
    return Grid(
        title="Overlays",
        columns=(
            "overlay",
            "nodes",
            "of the degree %",
            "degrees",
            "links in a region %",
            "of random graphs %",
            "mean link, ms",
            "mean pair, ms",
            "one-sided",
        ),
        rows=tuple(rows),
        note="Links below the mean of pairs, and more of them inside a region than in a random graph, show "
        "that near "
        "nodes are preferred.",
    )


def _even_share(view: View, size: int) -> float:
    """Share of links inside a region if regions have as many nodes and links are random."""
    inside = size / view.regions
    return max(0.0, inside - 1) / (size - 1)


def control(view: View) -> Grid:
    """What building the overlays took."""
    rows: list[tuple[Cell, ...]] = []
    for mode in (*view.modes, AT_ONCE, LIVE):
        for size in view.sizes(mode):
            key = view.key(mode, size)
            runs = view.outcomes.totals[key]
            rows.append(
                (
                    NAMES[mode],
                    size,
                    len(runs),
                    short(sum(run["control"] for run in runs) / len(runs) / size),
                    short(sum(run["stale"] for run in runs) / len(runs)),
                    short(sum(run["settled"] for run in runs) / len(runs) / 1e6),
                    sum(run["regular"] for run in runs),
                    short(100 * view.outcomes.ratio(key, "reached", "expected"), 4),
                    short(view.outcomes.delay(key).mean),
                )
            )
    return Grid(
        title="Control traffic",
        columns=(
            "protocol",
            "nodes",
            "runs",
            "messages per node",
            "stale",
            "last change, s after the last join",
            "regular runs",
            "complete %",
            "mean delay, ms",
        ),
        rows=tuple(rows),
        note=f"Naive overlays are measured at {MEASURED_AT:g} s of virtual time, above 1,000 nodes with "
        f"{view.parameters.throttle:g} s between joins, and all at once beside. While the naive tracker "
        "goes on, links "
        "that it closes take messages along.",
    )


def redundancies(view: View) -> Grid:
    """Figure 5.4 in numbers."""
    size = view.parameters.redundancy_size
    rows = tuple(
        (
            degree,
            degree - 2,
            *(short(redundancy(view.outcomes, (mode, size, degree)).mean, 3) for mode in (PLAIN, HELD)),
            *(short(view.outcomes.delay((mode, size, degree)).mean) for mode in (PLAIN, HELD)),
        )
        for degree in sorted(view.parameters.degrees)
    )
    return Grid(
        title="Duplicates of a message at a node that did not publish it",
        columns=("degree", "d - 2", "plain", "held back", "delay plain, ms", "delay held back, ms"),
        rows=rows,
        note="The source draws values slightly below d - 2, which plain flooding cannot reach.",
    )


def graphs(view: View) -> Grid:
    """Overlays as graphs, static ones included."""
    rows: list[tuple[Cell, ...]] = []
    for size in view.parameters.ordered:
        for kind in KINDS:
            if size in view.sizes(kind):
                paths = view.outcomes.estimate(view.key(kind, size))
                diameters = [run["diameter"] for run in view.outcomes.totals[view.key(kind, size)]]
                rows.append(
                    (
                        size,
                        NAMES[kind],
                        paths.count,
                        short(paths.mean),
                        short(paths.deviation),
                        short(paths.mean / view.underlay_ms, 2),
                        max(diameters),
                    )
                )
    return Grid(
        title="Shortest paths over static and grown graphs",
        columns=("nodes", "graph", "graphs", "mean path, ms", "deviation, ms", "RDP", "largest diameter"),
        rows=tuple(rows),
    )


def bounds(view: View) -> Grid:
    """Figure 5.2 in numbers."""
    degrees = sorted({*view.parameters.degrees, view.parameters.degree})
    sizes = [*view.parameters.ordered, 6400, 10_000, 100_000]
    rows: list[tuple[Cell, ...]] = []
    for degree in degrees:
        rows.append((degree, "upper bound", *(diameter_bounds(size, degree)[1] for size in sizes)))
        seen = [
            max(
                (run["diameter"] for run in view.outcomes.totals.get((GROWN, size, degree), ())),
                default=None,
            )
            for size in sizes
        ]
        rows.append((degree, "largest seen", *seen))
    return Grid(
        title="Diameters, links",
        columns=("degree", "", *(str(size) for size in sizes)),
        rows=tuple(rows),
        note="Bounds by Juslenius 2021, Eq. 5.2, with epsilon 0; they hold for almost all graphs as they "
        "grow.",
    )


def randomness(view: View) -> Grid:
    """Figure 5.1 in numbers."""
    seen = view.randomness
    rows: tuple[tuple[Cell, ...], ...] = ()
    if seen is not None:
        rows = (
            (
                seen.nodes,
                seen.graphs,
                round(seen.expected, 6),
                round(seen.mean, 6),
                round(seen.deviation, 6),
                round(seen.binomial, 6),
                short(seen.early, 2),
                short(seen.most, 2),
            ),
        )
    return Grid(
        title="Links of pairs over many graphs",
        columns=(
            "nodes",
            "graphs",
            "expected share",
            "mean",
            "deviation",
            "binomial deviation",
            "first six joiners",
            "most frequent pair",
        ),
        rows=rows,
        note="The source: 1,000 nodes, 1,000 graphs, 0.004004 both expected and seen, pairs of first "
        "joiners up to 3 "
        "times as likely.",
    )
