"""The sections and tables of the report."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.lab.report.parts import Cell, Grid, Section
from linnet.lab.studies.places import drawings
from linnet.lab.studies.places.answers import JOBS
from linnet.lab.studies.places.figures import MEASURED
from linnet.lab.studies.places.view import Scale, View

SAYS = {
    "refused": "fragments with a wrong signature, and why",
    "conflict": "numbers under which two things were said",
    "gaps": "ranges of fragments and messages that did not come",
    "messages": "messages: whole or how far, and their text",
    "parsed": "method, modifiers and header of those that began",
    "state": "hash of the state behind every message",
    "hashes": "hashes that messages carry, recomputed",
    "generations": "fragments whose generation is out of turn",
    "members": "may this nym have this message: live, replayed, later",
    "methods": "calls by every prefix of the method",
}


def sections(view: View) -> Iterator[Section]:
    """All parts of the page."""
    compared = view.compared
    text = f"{view.parameters.logs} places, {compared.units:,} units with copies and forgeries."
    yield Section(
        title="Jobs beside the shipped classes", text=(text,), grids=(agreement(view), audits(view))
    )
    if view.scale is not None:
        scale = view.scale
        says = (
            f"{scale.rows:,} fragments of {view.parameters.places:,} places, one in 100 of them twice, "
            f"{scale.missing:,} missing. {scale.whole:,} of {scale.messages:,} messages are whole."
        )
        yield Section(
            title="A large log",
            text=(says,),
            plots=tuple(drawings.large(scale)),
            grids=(speeds(scale), judged(scale)),
        )


def agreement(view: View) -> Grid:
    """Answers and differences of each job."""
    rows = [(job, SAYS[job], *view.compared.jobs.get(job, (0, 0, None))[:2]) for job in JOBS]
    return Grid(
        title="Answers about random logs",
        columns=("job", "what it tells", "answers", "differ"),
        rows=tuple(rows),
        note="Logs are shuffled, with losses, copies, forgeries and voices that contradict themselves.",
    )


def audits(view: View) -> Grid:
    """Lies and what was found."""
    rows = [
        (each.lie, each.injected, each.visible, each.found, each.unexpected)
        for each in view.compared.findings
    ]
    return Grid(
        title="Lies that were put in",
        columns=("a wrong", "put in", "show", "found", "found where nobody lied"),
        rows=tuple(rows),
        note="A hash shows if its message counts: not behind one that is missing. A generation shows where "
        "no fragment is missing that may have been a removal.",
    )


def speeds(scale: Scale) -> Grid:
    """What each stage took."""
    rows: list[tuple[Cell, ...]] = []
    made = {cost.name: cost for cost in scale.costs}
    for stage, says in MEASURED:
        cost = made.get(stage)
        if cost is not None and cost.seconds:
            rate = round(scale.rows / cost.seconds)
            peak = round(cost.peak_bytes / 2**20)
            rows.append((stage, says, cost.rows, round(cost.seconds, 1), rate, peak))
    total = scale.state_seconds
    if total:
        whole = ("state at id", "taken, parsed, intervals, states", None, round(total, 1))
        rows.append((*whole, round(scale.rows / total), None))
    return Grid(
        title="Stages",
        columns=("stage", "what it makes", "rows made", "seconds", "fragments/s", "peak MiB"),
        rows=tuple(rows),
        note="Fragments of the log by the seconds of the stage, writing included.",
    )


def judged(scale: Scale) -> Grid:
    """What the membership test said."""
    return Grid(
        title="Membership tests",
        columns=("verdict", "tests"),
        rows=tuple(sorted(scale.verdicts.items())),
        note="Everybody who was ever in, with some messages of the place.",
    )
