"""The tables of the source, from our own runs."""

from __future__ import annotations

from linnet.lab.report.parts import Cell, Grid
from linnet.lab.studies.streams.checks import is_throttled
from linnet.lab.studies.streams.figures import printed_sizes
from linnet.lab.studies.streams.literature import literature
from linnet.lab.studies.streams.parameters import COUNTER, NAIVE
from linnet.lab.studies.streams.view import NAMES, View

_SIGNS = (
    "The source prints +14 at 64 and +22 at 128 nodes; its own averages differ by +4 and +12. It describes "
    "the "
    "column as WebSocket less WebRTC, the signs are those of WebRTC less WebSocket."
)
_DIVISOR = (
    "The source states a mean error of 3.95 % (abstract: 3.98 %) for WebSocket; its column gives 23.7 / 7 = "
    "3.39 %, "
    "and 3.95 is 23.7 / 6."
)


def short(value: float | None, digits: int = 1) -> Cell:
    """A number for people."""
    return None if value is None else round(value, digits)


def delays(view: View) -> Grid:
    """Table 5.2: least, mean and greatest delay of repeats."""
    rows: list[tuple[Cell, ...]] = []
    for size in view.parameters.ordered:
        for mode in view.modes:
            if size not in view.sizes(mode):
                continue
            delay = view.outcomes.delay(view.key(mode, size))
            printed: tuple[Cell, ...] = (None, None, None, None)
            if mode in (COUNTER, NAIVE) and size in printed_sizes(view):
                ends = (".least", "", ".most", ".spread")
                printed = tuple(view.published.number(f"delay.{mode}.{size}{end}") for end in ends)
            gap = (
                None
                if mode != NAIVE or size not in view.sizes(COUNTER)
                else view.delay(COUNTER, size) - delay.mean
            )
            name = NAMES[mode] + (", throttled" if is_throttled(mode, size) else "")
            ours = (delay.lowest, delay.mean, delay.highest, delay.range_percent)
            rows.append((size, name, delay.count, *(short(value) for value in ours), short(gap), *printed))
    return Grid(
        title="Table 5.2: mean delay of runs, ms",
        columns=(
            "nodes",
            "overlay",
            "runs",
            "least",
            "mean",
            "greatest",
            "range %",
            "counters less naive",
            "published least",
            "published mean",
            "published greatest",
            "published range %",
        ),
        rows=tuple(rows),
        note=_SIGNS,
    )


def accuracy(view: View) -> Grid:
    """Table 5.3: estimates against what was measured."""
    rows: list[tuple[Cell, ...]] = []
    for mode in view.modes:
        for size in view.sizes(mode):
            estimated, found = view.estimate(mode, size), view.delay(mode, size)
            has = mode in (COUNTER, NAIVE) and size in printed_sizes(view)
            printed = (
                tuple(view.published.number(f"{what}.{mode}.{size}") for what in ("estimate", "error"))
                if has
                else (None, None)
            )
            rows.append(
                (
                    NAMES[mode],
                    size,
                    short(estimated),
                    short(found),
                    short(abs(found - estimated)),
                    short(view.error(mode, size), 2),
                    *printed,
                )
            )
        for least in (0, 64):
            error = view.mape(mode, least)
            if error is not None:
                rows.append(
                    (
                        NAMES[mode],
                        f"mean from {least}" if least else "mean",
                        None,
                        None,
                        None,
                        short(error, 2),
                        None,
                        None,
                    )
                )
    return Grid(
        title="Table 5.3: estimated and measured delay, ms",
        columns=(
            "overlay",
            "nodes",
            "estimated",
            "measured",
            "difference",
            "error %",
            "published estimate",
            "published error %",
        ),
        rows=tuple(rows),
        note=_DIVISOR,
    )


def penalties(view: View) -> Grid:
    """Table 5.4: RDP of ours and of other overlays."""
    rows: list[tuple[Cell, ...]] = []
    for mode in view.modes:
        sizes = view.sizes(mode)
        penalties = [view.rdp(mode, size) for size in sizes]
        near = min(sizes, key=lambda size: abs(size - 1000))
        fit = view.growth(mode)
        growth = (
            "" if fit is None else f"{fit.slope / view.underlay_ms:+.2f} per doubling, R2 {fit.r_squared:.3f}"
        )
        rows.append(
            (
                f"ours: {NAMES[mode]}",
                "d-regular",
                "latency table",
                f"{view.rdp(mode, near):.2f} (at {near})",
                f"{min(penalties):.2f}-{max(penalties):.2f}",
                f"{sizes[0]}-{sizes[-1]}",
                growth,
                "",
            )
        )
    rows += [
        (it.name, it.kind, it.underlay, it.at_1000, it.range, it.sizes, it.growth, it.note)
        for it in literature()
    ]
    return Grid(
        title="Table 5.4: relative delay penalty of overlays",
        columns=("overlay", "kind", "underlay", "at 1,000 nodes", "range", "nodes", "growth", "note"),
        rows=tuple(rows),
        note="Ours first, then as published (Juslenius 2021, table 5.4).",
    )


def growth(view: View) -> Grid:
    """The line through the runs, beyond them."""
    rows: list[tuple[Cell, ...]] = []
    sampled = view.sampled()
    far = sorted({6400, 10_000, *sampled})
    for mode in view.modes:
        fit = view.growth(mode)
        if fit is not None:
            told = (fit.intercept, fit.slope, fit.r_squared)
            rows.append(
                (NAMES[mode], *(short(value, 4) for value in told), *(short(fit.at(size)) for size in far))
            )
    if sampled:
        rows.append(
            (
                "shortest paths in graphs of that size",
                None,
                None,
                None,
                *(short(sampled.get(size)) for size in far),
            )
        )
    return Grid(
        title="Delay as a + b log2 N, ms",
        columns=("overlay", "a", "b", "R2", *(f"at {size}" for size in far)),
        rows=tuple(rows),
        note=f"Graphs by {view.parameters.sources} sampled sources. The source expects no more growth by "
        "about 10,000 "
        "nodes in section 5.4.3, and by 6,000 in section 5.4.5; graphs go on along the line.",
    )
