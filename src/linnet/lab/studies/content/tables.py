"""The tables of the report."""

from __future__ import annotations

from collections.abc import Callable

from linnet.lab.report.parts import Cell, Grid
from linnet.lab.studies.content.figures import OF_A_PROCESS, PUBLISHED_NODES, SIMULATED, STAGED, staged
from linnet.lab.studies.content.run import FILTERS, LATENCY, MEMORY, PROCESSOR
from linnet.lab.studies.content.view import Key, View
from linnet.lab.studies.content.workload import LONG, REPLICATION

_MS, _S, _MB = 1000.0, 1_000_000.0, 1024.0 * 1024.0


def short(value: float | None, digits: int = 2) -> Cell:
    """A number for people."""
    return None if value is None else round(value, digits)


def duplicated(view: View) -> Grid:
    """The published table 5.1, and ours."""
    return _beside(
        view,
        "Further receptions, % of those expected (table 5.1)",
        ("duplicated",),
        lambda key: (short(view.counts[key].duplicated_percent),),
        "Published first, ours after it. Further: at a node that wants the event and has it.",
    )


def costs(view: View) -> Grid:
    """The published table 5.2, and what can be held against it."""
    return _beside(
        view,
        "Memory, MB, and processor time, s, of a node (table 5.2)",
        ("memory", "processor"),
        lambda key: (short(view.mean(key, MEMORY, _MB)), short(view.mean(key, PROCESSOR, _S), 3)),
        f"Published first, ours after it. {OF_A_PROCESS}",
    )


def latencies(view: View) -> Grid:
    """Figures 5.1 to 5.4 as a table, and ours."""
    return _beside(
        view,
        "Latency of events, mean and longest, ms (figures 5.1 to 5.4)",
        ("latency.mean", "latency.max"),
        lambda key: (short(view.mean(key, LATENCY, _MS), 1), short(view.most(key, LATENCY, _MS), 1)),
        f"Published first, ours after it. Ours is {SIMULATED}.",
    )


def _beside(
    view: View, title: str, ids: tuple[str, ...], ours: Callable[[Key], tuple[Cell, ...]], note: str
) -> Grid:
    """A published table by variant and scenario, with ours in the same cells."""
    runs = [key for key in view.runs() if key[2] == PUBLISHED_NODES]
    scenarios = list(dict.fromkeys(key[0] for key in runs))
    rows: list[tuple[Cell, ...]] = []
    for variant in dict.fromkeys(key[1] for key in runs):
        row: list[Cell] = [variant]
        for scenario in scenarios:
            found = [key for key in runs if key[:2] == (scenario, variant)]
            measured = ours(found[0]) if found else tuple(None for _ in ids)
            row += [" / ".join(_text(view.printed(f"{id}.{scenario}.{variant}")) for id in ids)]
            row += [" / ".join(map(_text, measured))]
        rows.append(tuple(row))
    columns = [name for scenario in scenarios for name in (scenario, f"{scenario}, ours")]
    return Grid(title=title, columns=("variant", *columns), rows=tuple(rows), note=note)


def _text(value: Cell) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def networks(view: View) -> Grid:
    """Every run: what was expected, what came, and how fast."""
    rows: list[tuple[Cell, ...]] = []
    for key in view.runs():
        counts = view.counts[key]
        rows.append(
            (
                key[2],
                key[0],
                key[1],
                counts.expected,
                counts.missing,
                counts.duplicated_percent,
                short(view.mean(key, LATENCY, _MS), 1),
                short(view.most(key, LATENCY, _MS), 1),
            )
        )
    columns = ("nodes", "scenario", "variant", "expected", "missing", "twice, %", "mean, ms", "longest, ms")
    return Grid(
        title="All runs",
        columns=columns,
        rows=tuple(rows),
        note=f"Times are {SIMULATED}. Published at 250 nodes: 65 to 75 % arrive (normal), 45 to 55 % (event "
        "burst), since nodes take different rendezvous.",
    )


def replication(view: View) -> Grid:
    """Figure 5.5 as a table, and ours."""
    rows: list[tuple[Cell, ...]] = []
    for key in view.stages(REPLICATION):
        f, stage = key[3:]
        row: list[Cell] = [f, stage, view.counts[key].missing, view.counts[key].duplicated_percent]
        for id, *_ in STAGED:
            row += [view.printed(f"stages.{id}.{f}.{stage}"), short(staged(view, key, id), 3)]
        rows.append(tuple(row))
    columns = [name for _, title, unit in STAGED for name in (f"{title}, {unit}", "ours")]
    return Grid(
        title="Backups and stages (figure 5.5)",
        columns=("backups", "stage", "missing", "twice, %", *columns),
        rows=tuple(rows),
        note=f"Latencies are {SIMULATED}. Ours until a subscription stands is until its node waits for no "
        f"answer, for others neither. {OF_A_PROCESS}",
    )


def long_run(view: View) -> Grid:
    """Before and after a group of subscribers left."""
    rows = tuple(
        (
            key[1],
            "before" if key[4] == 1 else "after",
            view.counts[key].expected,
            view.counts[key].missing,
            view.counts[key].unasked,
            short(view.mean(key, FILTERS)),
        )
        for key in view.stages(LONG)
    )
    columns = ("variant", "a group left", "expected", "missing", "unasked", "filters at all nodes")
    return Grid(title="Who leaves is forgotten", columns=columns, rows=rows)
