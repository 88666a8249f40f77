"""The study of attacks: from parameters to a report."""

from __future__ import annotations

from msgspec.structs import fields

from linnet.lab.report.parts import Report
from linnet.lab.report.published import read_published
from linnet.lab.stages import Workshop
from linnet.lab.studies.attacks.metrics import KEYS, SUMMARY, Outcome, summary_of
from linnet.lab.studies.attacks.parameters import AttacksParameters
from linnet.lab.studies.attacks.report import checks, figures, sections
from linnet.lab.studies.attacks.run import RUNS, cases_of, runs_of

ABSTRACT = (
    "Every attack that the simulator knows, with several shares of attackers and over many seeds: which "
    "deliveries between honest nodes come all the same, how long it takes until somebody notices, and what "
    "attackers and honest nodes send for it.",
    "Attackers run the shipped machine as well, and differ in what they send. Each run is repeated without "
    "the attack. Honest nodes in trouble, which nobody must take for attackers, are beside them.",
)


def study(workshop: Workshop, parameters: AttacksParameters) -> Report:
    """Run what is still missing, and say what came of it."""
    parameters = parameters.checked()
    cases = cases_of(parameters)
    told = tuple(
        f"{each.way}/{each.attack}/{each.joins}/{each.share:.6f}/{each.repeat}/{each.seed}" for each in cases
    )
    runs = workshop.stage("runs", RUNS, lambda: runs_of(workshop.spark, cases), parameters={"cases": told})
    summary = workshop.stage("summary", SUMMARY, lambda: summary_of(runs.frame), inputs=[runs])
    workshop.tell("report")
    outcomes = [
        Outcome(*(row[field.name] for field in fields(Outcome)))
        for row in summary.frame.orderBy(*KEYS).toLocalIterator()
    ]
    published = read_published("linnet.lab.studies.attacks")
    return Report(
        study="attacks",
        title="Attacks: gain, cost and notice",
        abstract=ABSTRACT,
        parameters={
            "attacks": ", ".join(parameters.names) or "all",
            "repeats": parameters.repeats,
            "seed": parameters.seed,
        },
        figures=tuple(figures(outcomes, published)),
        checks=tuple(checks(outcomes)),
        sections=tuple(sections(outcomes, published)),
        stages=workshop.costs,
        sources=published.sources,
    )
