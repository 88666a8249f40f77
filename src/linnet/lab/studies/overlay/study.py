"""The study of overlays without trackers: from parameters to a report."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame

from linnet.lab.report.parts import Report
from linnet.lab.report.published import read_published
from linnet.lab.stages import Made, Workshop
from linnet.lab.studies.overlay.data import Surroundings, read_surroundings
from linnet.lab.studies.overlay.figures import figures
from linnet.lab.studies.overlay.metrics import read_outcomes
from linnet.lab.studies.overlay.parameters import OverlayParameters
from linnet.lab.studies.overlay.report import sections
from linnet.lab.studies.overlay.run import measured
from linnet.lab.studies.overlay.targets import checks
from linnet.lab.studies.overlay.view import View
from linnet.lab.studies.overlay.workload import Case, origins, stages
from linnet.lab.tables import OVERLAY_COUNTS

ABSTRACT = (
    "Nodes find others who are interested in the same without telling anyone what that is: they sample "
    "peers, compare randomised filters, intersect topics privately, and keep a ring with shortcuts for each "
    "topic. How much of a network can liars take over, what do filters tell, and does everything arrive, "
    "with failures, churn and partitions?",
    "Whole overlays run the shipped machines on a virtual clock, with real signatures; the group of private "
    "intersections is a stand-in that gives the same results. Attacks on sampling run the shipped sampler "
    "and published ones in one bench, large rings the shipped rule hop by hop.",
)


def study(workshop: Workshop, parameters: OverlayParameters) -> Report:
    """Run what is still missing, and say what came of it."""
    parameters = parameters.checked()
    around = read_surroundings(
        parameters.data,
        parameters.nodes,
        parameters.topics,
        parameters.subscriptions,
        parameters.seed,
        parameters.filter_users,
        parameters.scale,
    )
    made = [
        _stage(workshop, name, cases, around, parameters)
        for name, cases in stages(parameters, around).items()
    ]
    counts = reduce(DataFrame.union, [each.frame for each in made])
    workshop.tell("report")
    published = read_published("linnet.lab.studies.overlay")
    outcomes = read_outcomes(counts)
    names = tuple(origins(around))
    view = View(parameters, outcomes, published, around.missing, around.latency_name, names)
    return Report(
        study="overlay",
        title="Overlays without trackers: attacks, privacy, rings, repair",
        abstract=ABSTRACT,
        parameters=_told(parameters),
        figures=tuple(figures(view)),
        checks=checks(view),
        sections=tuple(sections(view)),
        stages=workshop.costs,
        sources=published.sources,
    )


def _stage(
    workshop: Workshop, name: str, cases: Sequence[Case], around: Surroundings, parameters: OverlayParameters
) -> Made:
    told = tuple("/".join(str(getattr(case, field)) for field in case.__struct_fields__) for case in cases)
    return workshop.stage(
        name,
        OVERLAY_COUNTS,
        lambda: measured(workshop.spark, cases, around, parameters.filter_users),
        parameters={
            "cases": told,
            "around": hash_of(around),
            "users": parameters.filter_users,
        },
    )


def hash_of(around: Surroundings) -> str:
    """What stands for the surroundings: the same for the same files."""
    parts = [
        repr(around.interests),
        repr(around.profiles),
        repr(around.weeks),
        repr(sorted(around.latency.delays.items())),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _told(parameters: OverlayParameters) -> dict[str, str | int | float | None]:
    told: dict[str, str | int | float | None] = {}
    for name in parameters.__struct_fields__:
        value = getattr(parameters, name)
        listed = ", ".join(map(str, value)) if isinstance(value, tuple) else value
        told[name.replace("_", " ")] = ("given" if value else "none") if name == "data" else listed
    return told
