"""The figures of the study, each beside the published one if there is one."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.lab.report.parts import Cell, Figure
from linnet.lab.studies.streams.graphs import GROWN, LATTICE, STATIC
from linnet.lab.studies.streams.metrics import long_paths, mean_bin, quantile, redundancy
from linnet.lab.studies.streams.parameters import COUNTER, HELD, NAIVE, PLAIN, SIZES
from linnet.lab.studies.streams.view import FAR, NAMES, View

_PRINTED = (COUNTER, NAIVE)
"""Modes of which the source has runs."""


def figures(view: View) -> Iterator[Figure]:
    """All of them, those with a published one first where it is one table."""
    yield _figure(view, "underlay.mean", "mean one-way delay of the underlay", "ms", view.underlay_ms)
    for mode in view.modes:
        for size in view.sizes(mode):
            yield from _delays(view, mode, size)
    yield from _gaps(view)
    for mode in view.modes:
        yield from _over_sizes(view, mode)
    yield from _far(view)
    yield from _redundant(view)
    yield from _models(view)
    yield from _random(view)


def _figure(view: View, id: str, title: str, unit: str, measured: Cell, note: str = "") -> Figure:
    """Beside what is published, if the set-up is that of the source and it prints something."""
    if isinstance(measured, float):
        measured = round(measured, 6)
    if view.parameters.is_published and id in view.published:
        return view.published.figure(id, title, unit, measured, note)
    return Figure(id=id, title=title, unit=unit, measured=measured, note=note)


def _delays(view: View, mode: str, size: int) -> Iterator[Figure]:
    key, name = view.key(mode, size), f"{NAMES[mode]}, {size} nodes"
    delay = view.outcomes.delay(key)
    spots = (
        ("", "mean", delay.mean),
        (".least", "least", delay.lowest),
        (".most", "greatest", delay.highest),
    )
    for end, what, value in spots:
        yield _figure(view, f"delay.{mode}.{size}{end}", f"delay, {what} of repeats: {name}", "ms", value)
    spread = delay.range_percent
    yield _figure(view, f"delay.{mode}.{size}.spread", f"delay, range of repeats: {name}", "%", spread)
    yield _figure(view, f"estimate.{mode}.{size}", f"shortest paths: {name}", "ms", view.estimate(mode, size))
    yield _figure(
        view,
        f"error.{mode}.{size}",
        f"error of the estimate: {name}",
        "%",
        view.error(mode, size),
        f"Of our {view.parameters.messages} messages a run against paths from every node; from the nodes "
        "that published, both are equal.",
    )
    yield _figure(view, f"rdp.{mode}.{size}", f"RDP: {name}", "ratio", view.rdp(mode, size))
    hops = view.outcomes.pool(key, "hops")
    yield _figure(view, f"hops.mean.{mode}.{size}", f"links crossed, mean: {name}", "links", mean_bin(hops))
    yield _figure(view, f"hops.most.{mode}.{size}", f"links crossed, most: {name}", "links", max(hops))
    p99 = quantile(view.outcomes.pool(key, "delay_ms"), 0.99)
    yield _figure(view, f"p99.{mode}.{size}", f"99 % of delays: {name}", "ms", p99)
    if (long := long_paths(view.outcomes, key)) is not None:
        yield _figure(view, f"long.{mode}.{size}", f"delay over 25 links and more: {name}", "ms", long)


def _gaps(view: View) -> Iterator[Figure]:
    for size in sorted({*view.sizes(COUNTER)} & {*view.sizes(NAIVE)}):
        gap = view.delay(COUNTER, size) - view.delay(NAIVE, size)
        yield _figure(view, f"gap.{size}", f"delay, counters less naive: {size} nodes", "ms", gap)


def _over_sizes(view: View, mode: str) -> Iterator[Figure]:
    name = NAMES[mode]
    runs = [run for size in view.sizes(mode) for run in view.outcomes.totals[view.key(mode, size)]]
    complete = sum(run["reached"] for run in runs) / sum(run["expected"] for run in runs)
    yield _figure(view, f"completeness.{mode}", f"completeness: {name}", "share", complete)
    yield _figure(view, f"mape.{mode}", f"mean error of estimates: {name}", "%", view.mape(mode))
    if (few := view.mape(mode, 64)) is not None:
        yield _figure(view, f"mape.{mode}.64", f"mean error from 64 nodes on: {name}", "%", few)
    fit = view.growth(mode)
    if fit is not None:
        yield _figure(view, f"growth.{mode}.slope", f"delay that a doubling adds: {name}", "ms", fit.slope)
        yield _figure(view, f"growth.{mode}.r2", f"fit on log2 of the size: {name}", "R2", fit.r_squared)


def _far(view: View) -> Iterator[Figure]:
    fit, sampled = view.growth(COUNTER), view.sampled()
    for size in FAR:
        if fit is not None:
            forecast = fit.at(size) / view.underlay_ms
            yield _figure(
                view,
                f"rdp.counter.{size}",
                f"RDP, extrapolated: {NAMES[COUNTER]}, {size} nodes",
                "ratio",
                forecast,
            )
    for size, delay in sampled.items():
        note = f"From {view.parameters.sources} sampled sources; the line through the runs says " + (
            "nothing." if fit is None else f"{fit.at(size):.1f} ms."
        )
        yield _figure(view, f"paths.sampled.{size}", f"shortest paths, {size} nodes", "ms", delay, note)


def _redundant(view: View) -> Iterator[Figure]:
    size = view.parameters.redundancy_size
    for mode, end, what in ((PLAIN, "", "plain"), (HELD, ".held", "held back")):
        for degree in sorted(view.parameters.degrees):
            if view.outcomes.has(mode, size, degree):
                value = redundancy(view.outcomes, (mode, size, degree)).mean
                title = f"duplicates, degree {degree}, {what}"
                yield _figure(view, f"redundancy.{degree}{end}", title, "duplicates", value)


def _models(view: View) -> Iterator[Figure]:
    for kind in (GROWN, STATIC, LATTICE):
        for size in view.sizes(kind):
            delay = view.estimate(kind, size)
            yield _figure(view, f"paths.{kind}.{size}", f"{NAMES[kind]}, {size} nodes", "ms", delay)


def _random(view: View) -> Iterator[Figure]:
    seen = view.randomness
    if seen is None:
        return
    what = f"{seen.nodes} nodes, {seen.graphs} graphs: {seen.mean:.7f}, expected {seen.expected:.7f}."
    share = seen.mean / seen.expected
    yield _figure(view, "randomness.share", "links of a pair, by expectation", "ratio", share, what)
    yield _figure(view, "randomness.deviation", "its deviation over pairs", "share", seen.deviation)
    yield _figure(view, "randomness.binomial", "that of independent draws", "share", seen.binomial)
    yield _figure(
        view, "randomness.early", "links among the first six joiners, by expectation", "ratio", seen.early
    )
    yield _figure(view, "randomness.most", "the most frequent pair, by expectation", "ratio", seen.most)


def printed_sizes(view: View) -> list[int]:
    """Sizes of the study that the source has run."""
    return [size for size in view.parameters.ordered if size in SIZES and view.parameters.is_published]
