"""The study of streams: from parameters to a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame

from linnet.lab.errors import LabError
from linnet.lab.report.parts import Report
from linnet.lab.report.published import read_published
from linnet.lab.stages import Made, Workshop, open_table
from linnet.lab.studies.streams import workload
from linnet.lab.studies.streams.checks import checks
from linnet.lab.studies.streams.figures import figures
from linnet.lab.studies.streams.metrics import read_outcomes
from linnet.lab.studies.streams.parameters import StreamsParameters
from linnet.lab.studies.streams.randomness import Randomness, read_randomness
from linnet.lab.studies.streams.report import sections
from linnet.lab.studies.streams.run import modelled, neighbored, simulated
from linnet.lab.studies.streams.view import View
from linnet.lab.studies.streams.workload import Case
from linnet.lab.tables import LATENCIES, STREAM_COUNTS, STREAM_PAIRS
from linnet.sim.links import LatencyTable, named_latency

ABSTRACT = (
    "A tracker builds an overlay in which every node has a few neighbours, and messages flood it. How long "
    "they take depends on the graph, and the graph on the protocol by which the tracker gives orders: with "
    "counters it is random and predictable, without them it prefers near nodes by accident, and it can be "
    "made "
    "to prefer them on purpose.",
    "Every run is a simulation of the shipped nodes and tracker on a virtual clock over a table of delays "
    "between regions. Overlays that do not come to rest (naive, half near) are measured as they are at a "
    "stated time: "
    "their tracker falls silent then, and all messages flood the same graph.",
)


def study(workshop: Workshop, parameters: StreamsParameters) -> Report:
    """Run what is still missing, and say what came of it."""
    parameters = parameters.checked()
    latency = read_latency(workshop, parameters.latency)
    made = [*_main(workshop, parameters, latency), *_beside(workshop, parameters, latency)]
    counts = reduce(DataFrame.union, [each.frame for each in made])
    randomness = _randomness(workshop, parameters)
    workshop.tell("report")
    view = View(
        parameters,
        read_outcomes(counts),
        read_published("linnet.lab.studies.streams"),
        1000 * latency.mean(),
        len(latency.regions),
        randomness,
    )
    return Report(
        study="streams",
        title="Stream overlays: delay, predictability, cost",
        abstract=ABSTRACT,
        parameters=_told(parameters),
        figures=tuple(figures(view)),
        checks=checks(view),
        sections=tuple(sections(view)),
        stages=workshop.costs,
        sources=view.published.sources,
    )


def read_latency(workshop: Workshop, name: str) -> LatencyTable:
    """The table of delays: by name, from a file, or from the table of an ingested matrix."""
    folder = Path(name) / "latencies"
    if not folder.is_dir():
        return named_latency(name)
    rows = open_table(workshop.spark, folder, LATENCIES).frame.orderBy("origin", "target").collect()
    delays = {(row.origin, row.target): row.oneway_us / 1e6 for row in rows}
    regions = tuple(sorted({origin for origin, _ in delays}))
    missing = [(a, b) for a in regions for b in regions if (a, b) not in delays]
    if missing or len(delays) != len(regions) ** 2:
        pair = missing[0] if missing else next(pair for pair in delays if pair[1] not in regions)
        raise LabError(f"{folder}: there is no delay from {pair[0]} to {pair[1]}; a matrix must be whole")
    return LatencyTable(regions, delays)


def _main(workshop: Workshop, parameters: StreamsParameters, latency: LatencyTable) -> list[Made]:
    """A stage for each mode and size, so that little is lost if the study is cut short."""
    return [
        _stage(workshop, f"{mode}-{size}", workload.main_cases(parameters, mode, size), latency, simulated)
        for mode in parameters.modes
        for size in parameters.ordered
    ]


def _beside(workshop: Workshop, parameters: StreamsParameters, latency: LatencyTable) -> list[Made]:
    jobs = (
        ("beside", workload.beside_cases(parameters) + workload.redundancy_cases(parameters), simulated),
        ("graphs", workload.graph_cases(parameters), modelled),
        ("large-graphs", workload.large_cases(parameters), modelled),
    )
    return [_stage(workshop, name, cases, latency, work) for name, cases, work in jobs if cases]


def _stage(
    workshop: Workshop,
    name: str,
    cases: Sequence[Case],
    latency: LatencyTable,
    work: Callable[..., DataFrame],
) -> Made:
    told = tuple("/".join(str(getattr(case, field)) for field in case.__struct_fields__) for case in cases)
    delays = tuple(f"{a}/{b}/{seconds}" for (a, b), seconds in latency.delays.items())
    return workshop.stage(
        name,
        STREAM_COUNTS,
        lambda: work(workshop.spark, cases, latency),
        parameters={"cases": told, "latency": delays},
    )


def _randomness(workshop: Workshop, parameters: StreamsParameters) -> Randomness | None:
    graphs, nodes, degree = parameters.pair_graphs, parameters.pair_nodes, parameters.degree
    if not graphs:
        return None
    seeds = [workload.seed_of(parameters.seed, "pairs", number) for number in range(graphs)]
    made = workshop.stage(
        "pairs",
        STREAM_PAIRS,
        lambda: neighbored(workshop.spark, nodes, degree, seeds),
        parameters={"nodes": nodes, "degree": degree, "graphs": graphs},
        seed=parameters.seed,
    )
    return read_randomness(made.frame, nodes, graphs, degree)


def _told(parameters: StreamsParameters) -> dict[str, str | int | float | None]:
    told: dict[str, str | int | float | None] = {}
    for name in parameters.__struct_fields__:
        value = getattr(parameters, name)
        listed = ", ".join(map(str, value)) if isinstance(value, tuple) else value
        told[name.replace("_", " ")] = listed
    return told
