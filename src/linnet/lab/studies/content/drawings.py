"""The plots of the report."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.lab.report import plots
from linnet.lab.report.parts import Plot
from linnet.lab.report.plots import Line
from linnet.lab.studies.content.figures import OF_A_PROCESS, PUBLISHED_NODES, SIMULATED, STAGED, staged
from linnet.lab.studies.content.run import LATENCY
from linnet.lab.studies.content.view import View
from linnet.lab.studies.content.workload import REPLICATION


def duplicates(view: View) -> Iterator[Plot]:
    """Further receptions, published and ours, a plot for each variant."""
    runs = [key for key in view.runs() if key[2] == PUBLISHED_NODES]
    for variant in dict.fromkeys(key[1] for key in runs):
        groups: dict[str, dict[str, float | None]] = {}
        for key in runs:
            published = view.printed(f"duplicated.{key[0]}.{variant}")
            ours = view.counts[key].duplicated_percent
            if key[1] == variant and published is not None and ours is not None:
                groups[key[0]] = {"published": published / 100, "ours": ours / 100}
        if groups:
            title = f"Further receptions: {variant}"
            yield Plot(
                title=title,
                svg=plots.bars(groups, title=title, y_label="of those expected"),
                caption="Events that come again to a node that has them, of all that are expected.",
            )


def latencies(view: View) -> Iterator[Plot]:
    """Mean latencies of each scenario and variant."""
    for nodes in dict.fromkeys(key[2] for key in view.runs()):
        groups: dict[str, dict[str, float | None]] = {}
        for key in view.runs():
            if key[2] == nodes:
                groups.setdefault(key[0], {})[key[1]] = view.mean(key, LATENCY, 1000.0)
        title = f"Mean latency at {nodes} nodes, {SIMULATED}"
        yield Plot(
            title=title,
            svg=plots.bars(groups, title=title, y_label="latency", unit="ms"),
            caption="From an event's birth until a node that wants it has it: links of 10 ms one way.",
        )


def stages(view: View) -> Iterator[Plot]:
    """Latencies and summed costs over stages, a line for each number of backups, the published as markers."""
    keys = view.stages(REPLICATION)
    for id, title, unit in STAGED if keys else ():
        series: list[Line] = []
        for f in dict.fromkeys(key[3] for key in keys):
            label = f"{f} backups"
            ours = {key[4]: staged(view, key, id) for key in keys if key[3] == f}
            points = {stage: value for stage, value in ours.items() if value is not None}
            printed = {stage: view.printed(f"stages.{id}.{f}.{stage}") for stage in ours}
            there = {stage: value for stage, value in printed.items() if value is not None}
            if points:
                series.append(Line(label=label, x=list(points), y=list(points.values())))
            if points and there:
                x, y = list(there), list(there.values())
                series.append(Line(label=f"{label}, published", x=x, y=y, published=True, like=label))
        if series:
            name = f"{title[0].upper()}{title[1:]}"
            caption = f"Ours is {SIMULATED}." if unit == "ms" else OF_A_PROCESS
            svg = plots.lines(series, title=name, x_label="stage", y_label=id, y_unit=unit)
            yield Plot(title=f"{name}, over stages", svg=svg, caption=caption)
