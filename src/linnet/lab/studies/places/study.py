"""The study of places: from parameters to a report."""

from __future__ import annotations

from linnet.lab.report.parts import Report
from linnet.lab.stages import Workshop
from linnet.lab.studies.places import reading, spoken
from linnet.lab.studies.places.agreement import compared
from linnet.lab.studies.places.answers import answers_of
from linnet.lab.studies.places.columns import AGREEMENT, ANSWERS, FRAGMENTS, INTERVALS, PARSED, TAKEN, UNITS
from linnet.lab.studies.places.figures import checks, figures
from linnet.lab.studies.places.findings import TRUTHS, findings, truths_of
from linnet.lab.studies.places.folding import intervals_of, steps_of
from linnet.lab.studies.places.line import taken
from linnet.lab.studies.places.parameters import PlacesParameters
from linnet.lab.studies.places.reassembly import messages_of, parsed_of
from linnet.lab.studies.places.reference import reference_of
from linnet.lab.studies.places.report import sections
from linnet.lab.studies.places.scale import large
from linnet.lab.studies.places.view import Compared, View, measured

ABSTRACT = (
    "Whoever takes part in a place keeps its fragments. What can be told from such a log, and does it agree "
    "with what the nodes themselves came to? Messages are put together, gaps listed, the state at any "
    "message worked out, hashes and generations audited, memberships tested, for many places at once.",
    "Random logs are said by the shipped voice, damaged on the way, and looked at twice: by the jobs, and by "
    "the shipped classes. A large log, of the same form but unsigned, is what the jobs are measured with.",
)
SOURCES = (
    "Toth 2013: Design of a Social Messaging System Using Stateful Multicast. Master's thesis, "
    "University of Amsterdam",
)


def study(workshop: Workshop, parameters: PlacesParameters) -> Report:
    """Run what is still missing, and say what came of it."""
    parameters = parameters.checked()
    found = compare(workshop, parameters)
    at_large = large(workshop, parameters) if parameters.fragments else None
    workshop.tell("report")
    scale = None if at_large is None else measured(at_large, parameters, workshop.costs)
    view = View(parameters, found, scale)
    return Report(
        study="places",
        title="Places: what a log of fragments tells",
        abstract=ABSTRACT,
        parameters={name: getattr(parameters, name) for name in parameters.__struct_fields__},
        figures=tuple(figures(view)),
        checks=tuple(checks(view)),
        sections=tuple(sections(view)),
        stages=workshop.costs,
        sources=SOURCES,
    )


def compare(workshop: Workshop, parameters: PlacesParameters) -> Compared:
    """Every job over random logs, beside the shipped classes."""
    seed, logs, spark = parameters.seed, parameters.logs, workshop.spark

    told = {"logs": logs}
    units = workshop.stage(
        "units", UNITS, lambda: spoken.units_of(spark, seed, logs), parameters=told, seed=seed
    )
    fragments = workshop.stage(
        "fragments", FRAGMENTS, lambda: reading.fragments_of(units.frame, seed), inputs=[units], seed=seed
    )
    line = workshop.stage("random-taken", TAKEN, lambda: taken(fragments.frame), inputs=[fragments])
    parsed = workshop.stage(
        "random-parsed", PARSED, lambda: parsed_of(messages_of(line.frame)), inputs=[line]
    )
    intervals = workshop.stage(
        "random-intervals", INTERVALS, lambda: intervals_of(steps_of(parsed.frame)), inputs=[parsed]
    )
    answers = workshop.stage(
        "answers",
        ANSWERS,
        lambda: answers_of(fragments.frame, line.frame, parsed.frame, intervals.frame),
        inputs=[fragments, line, parsed, intervals],
    )
    reference = workshop.stage(
        "reference", ANSWERS, lambda: reference_of(units.frame, seed), inputs=[units], seed=seed
    )
    agreement = workshop.stage(
        "agreement", AGREEMENT, lambda: compared(answers.frame, reference.frame), inputs=[answers, reference]
    )
    truths = workshop.stage(
        "truths", TRUTHS, lambda: truths_of(spark, seed, logs), parameters=told, seed=seed
    )
    jobs = {row.job: (row.answers, row.differences, row.first) for row in agreement.frame.collect()}
    return Compared(units.rows, jobs, tuple(findings(answers.frame, truths.frame)))
