"""The study of content: from parameters to a report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from msgspec.structs import fields
from pyspark.sql import DataFrame

from linnet.lab.report.parts import Report
from linnet.lab.report.published import read_published
from linnet.lab.stages import Made, Workshop
from linnet.lab.studies.content.columns import CORRECTNESS, CUMULATED, POINTS, SUMMARY
from linnet.lab.studies.content.figures import figures
from linnet.lab.studies.content.metrics import KEYS, correctness_of, cumulated_of, summary_of
from linnet.lab.studies.content.parameters import ContentParameters
from linnet.lab.studies.content.report import sections
from linnet.lab.studies.content.run import points_of
from linnet.lab.studies.content.targets import checks
from linnet.lab.studies.content.view import Counts, Key, Spread, View
from linnet.lab.studies.content.workload import Case, absent_variants, scenario_cases, staged_cases

ABSTRACT = (
    "Nodes subscribe by predicates and publish events with attributes; both meet at the rendezvous of an "
    "attribute in a hash table that all nodes are. Does everything arrive, how often twice, how fast, and "
    "what does it cost, in the scenarios of the thesis that proposes it?",
    "The shipped machines run on a virtual clock over links of 10 ms. Times are simulated: no processor in "
    "it. The published ones are of containers on one host, which wait for their processors most of the time.",
)


def study(workshop: Workshop, parameters: ContentParameters) -> Report:
    """Run what is still missing, and say what came of it."""
    parameters = parameters.checked()
    made = [_points(workshop, "scenarios", scenario_cases(parameters))]
    staged = staged_cases(parameters)
    if staged:
        made.append(_points(workshop, "rounds", staged))
    points = reduce(DataFrame.union, [each.frame for each in made])
    summary = workshop.stage("summary", SUMMARY, lambda: summary_of(points), inputs=made)
    correctness = workshop.stage("correctness", CORRECTNESS, lambda: correctness_of(points), inputs=made)
    cumulated = workshop.stage("cumulated", CUMULATED, lambda: cumulated_of(summary.frame), inputs=[summary])
    workshop.tell("report")
    view = view_of(parameters, summary.frame, correctness.frame, cumulated.frame)
    return Report(
        study="content",
        title="Content: the published scenarios",
        abstract=ABSTRACT,
        parameters={
            "nodes": ", ".join(map(str, parameters.nodes)),
            "nodes of the stages": parameters.staged,
            "backups": ", ".join(map(str, parameters.backups)),
            "nodes of the long run": parameters.long,
            "repeats": parameters.repeats,
            "seed": parameters.seed,
        },
        figures=tuple(figures(view)),
        checks=tuple(checks(view)),
        sections=tuple(sections(view)),
        stages=workshop.costs,
        sources=view.published.sources,
    )


def _points(workshop: Workshop, name: str, cases: Sequence[Case]) -> Made:
    told = tuple("/".join(str(getattr(case, field.name)) for field in fields(case)) for case in cases)
    return workshop.stage(name, POINTS, lambda: points_of(workshop.spark, cases), parameters={"cases": told})


def view_of(
    parameters: ContentParameters, summary: DataFrame, correctness: DataFrame, cumulated: DataFrame
) -> View:
    """What the report needs: a row for each run and metric, so it can be brought here."""
    spreads = {
        (_key(row), row["metric"]): Spread(*(row[field.name] for field in fields(Spread)))
        for row in summary.orderBy(*KEYS, "metric").toLocalIterator()
    }
    counts = {
        _key(row): Counts(*(row[field.name] for field in fields(Counts)))
        for row in correctness.orderBy("nodes", *KEYS).toLocalIterator()
    }
    sums = {(_key(row), row["metric"]): row["cumulated"] for row in cumulated.toLocalIterator()}
    published = read_published("linnet.lab.studies.content")
    return View(parameters, published, spreads, counts, sums, absent_variants())


def _key(row: Sequence[object]) -> Key:
    scenario, variant, nodes, f, stage = (row[name] for name in KEYS)  # type: ignore[call-overload]
    return scenario, variant, nodes, f, stage
