"""The numbers of the study, each with the published one if there is one."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.lab.report.parts import Figure
from linnet.lab.studies.content.parameters import STAGED_NODES
from linnet.lab.studies.content.run import FILTERS, LATENCY, MEMORY, PROCESSOR, SUBSCRIBING
from linnet.lab.studies.content.view import Key, View
from linnet.lab.studies.content.workload import LONG, REPLICATION

PUBLISHED_NODES = 60
"""Of the network in which the published scenarios were run."""
LARGE_NODES = 250
"""Of the one in which much is missing in the published appendix."""
PUBLISHED_STAGED = "redirect-reliable"
"""The variant of the published stages."""
SIMULATED = "simulated: no processor in it"
"""What must be known to compare times."""
OF_A_PROCESS = (
    "Ours is the share of one node in a process that simulates all of them, without an operating system, "
    "IPFS and a container of its own: the order of magnitude can be compared, not the number."
)
_MS, _S, _MB = 1000.0, 1_000_000.0, 1024.0 * 1024.0


def figures(view: View) -> Iterator[Figure]:
    """All of them."""
    for key in view.runs():
        yield from _correctness(view, key)
        yield from _latencies(view, key)
        yield from _costs(view, key)
    yield from _stated(view)
    for key in view.stages(REPLICATION):
        yield from _stage(view, key)
    yield from _long_run(view)


def _stated(view: View) -> Iterator[Figure]:
    """What the text says of all variants together."""
    for scenario in dict.fromkeys(key[0] for key in view.runs()):
        at = {
            nodes: [key for key in view.runs() if key[0] == scenario and key[2] == nodes]
            for nodes in (PUBLISHED_NODES, LARGE_NODES)
        }
        means = [mean for key in at[PUBLISHED_NODES] if (mean := view.mean(key, LATENCY, _MS)) is not None]
        if means and f"latency.text.{scenario}" in view.published:
            title, measured = f"mean latencies: {scenario}", f"{min(means):.0f} to {max(means):.0f}"
            note = f"Ours is {SIMULATED}."
            yield view.published.figure(f"latency.text.{scenario}", title, "ms", measured, note)
        if at[LARGE_NODES] and f"reliability.250.{scenario}" in view.published:
            title = f"had by who wants it, at the least: {scenario}, 250 nodes"
            yield view.published.figure(
                f"reliability.250.{scenario}", title, "%", _least(view, at[LARGE_NODES])
            )
    published = [key for key in view.runs() if key[2] == PUBLISHED_NODES]
    if published:
        title = "had by who wants it, at the least: all scenarios and variants, 60 nodes"
        yield view.published.figure("reliability.60", title, "%", _least(view, published))


def _least(view: View, keys: list[Key]) -> float | None:
    shares = [view.counts[key].reliability_percent for key in keys]
    return min((share for share in shares if share is not None), default=None)


def name_of(key: Key) -> str:
    """Scenario, variant and network in words."""
    scenario, variant, nodes, f, stage = key
    staged = f", {f} backups, stage {stage}" if stage else ""
    return f"{scenario}, {variant}, {nodes} nodes{staged}"


def _figure(view: View, id: str, key: Key, title: str, unit: str, value: float | None, note: str) -> Figure:
    scenario, variant, nodes, *_ = key
    said = f"{title}: {name_of(key)}"
    measured = None if value is None else round(value, 3)
    name = f"{id}.{scenario}.{variant}"
    if nodes == PUBLISHED_NODES and name in view.published:
        return view.published.figure(name, said, unit, measured, note)
    return Figure(id=f"{name}.{nodes}", title=said, unit=unit, measured=measured, note=note)


def _correctness(view: View, key: Key) -> Iterator[Figure]:
    counts = view.counts[key]
    percent = counts.duplicated_percent
    note = f"Here {counts.duplicated} of {counts.expected}."
    yield _figure(view, "duplicated", key, "further receptions", "%", percent, note)
    missing = f"{counts.missing} of {counts.expected} missing."
    yield _figure(view, "reliability", key, "had by who wants it", "%", counts.reliability_percent, missing)


def _latencies(view: View, key: Key) -> Iterator[Figure]:
    mean, most = view.mean(key, LATENCY, _MS), view.most(key, LATENCY, _MS)
    yield _figure(view, "latency.mean", key, "mean latency", "ms", mean, f"Ours is {SIMULATED}.")
    yield _figure(view, "latency.max", key, "longest latency", "ms", most, f"Ours is {SIMULATED}.")


def _costs(view: View, key: Key) -> Iterator[Figure]:
    processor, memory = view.mean(key, PROCESSOR, _S), view.mean(key, MEMORY, _MB)
    yield _figure(view, "processor", key, "processor time of a node", "s", processor, OF_A_PROCESS)
    yield _figure(view, "memory", key, "memory of a node", "MB", memory, OF_A_PROCESS)


STAGED = (
    ("latency", "mean latency", "ms"),
    ("subscribing", "until a subscription stands", "ms"),
    ("processor", "processor time of a node, all stages so far", "s"),
    ("memory", "memory of a node, all stages so far", "MB"),
)
"""What is published for each stage and number of backups: id, title, unit."""


def staged(view: View, key: Key, id: str) -> float | None:
    """What was measured of it, in its unit."""
    if id == "latency":
        return view.mean(key, LATENCY, _MS)
    if id == "subscribing":
        return view.mean(key, SUBSCRIBING, _MS)
    return view.summed(key, PROCESSOR, _S) if id == "processor" else view.summed(key, MEMORY, _MB)


def _stage(view: View, key: Key) -> Iterator[Figure]:
    *_, nodes, f, stage = key
    for id, title, unit in STAGED:
        value = staged(view, key, id)
        note = f"Ours is {SIMULATED}." if unit == "ms" else OF_A_PROCESS
        note += f" Published with redirect-reliable, here {key[1]}." if key[1] != PUBLISHED_STAGED else ""
        measured, said = None if value is None else round(value, 3), f"{title}: {name_of(key)}"
        name = f"stages.{id}.{f}.{stage}"
        if nodes == STAGED_NODES and name in view.published:
            yield view.published.figure(name, said, unit, measured, note)
        else:
            yield Figure(id=f"{name}.{nodes}", title=said, unit=unit, measured=measured, note=note)


def _long_run(view: View) -> Iterator[Figure]:
    for key in view.stages(LONG):
        counts, (_, variant, _, _, stage) = view.counts[key], key
        filters = view.mean(key, FILTERS)
        yield Figure(
            id=f"long-run.filters.{variant}.{stage}",
            title=f"filters at all nodes: {name_of(key)}",
            unit="filters",
            measured=filters,
            note=f"{counts.expected} expected, {counts.missing} missing, {counts.unasked} unasked.",
        )
