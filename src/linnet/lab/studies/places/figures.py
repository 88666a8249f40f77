"""The figures of the study, and what must hold."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.lab.report.parts import Check, Figure
from linnet.lab.studies.places.answers import JOBS
from linnet.lab.studies.places.view import Scale, View

MEASURED = (
    ("log", "made"),
    ("taken", "each fragment once"),
    ("messages", "messages put together"),
    ("gaps", "gaps listed"),
    ("generations", "generations audited"),
    ("parsed", "state messages read"),
    ("intervals", "history of state"),
    ("states", "states at messages"),
    ("hashes", "hashes audited"),
    ("verdicts", "memberships tested"),
)
"""Stages of the large log, in words."""


def figures(view: View) -> Iterator[Figure]:
    """All of them."""
    for job in JOBS:
        answers, differences, _ = view.compared.jobs.get(job, (0, 0, None))
        title = f"answers about random logs: {job}"
        note = f"{differences} of them differ from the shipped classes"
        yield Figure(id=f"answers.{job}", title=title, unit="answers", measured=answers, note=note)
    if view.scale is not None:
        yield from _large(view.scale)


def _large(scale: Scale) -> Iterator[Figure]:
    yield Figure(id="large.rows", title="large log: fragments that came", unit="rows", measured=scale.rows)
    for stage, says in MEASURED:
        seconds = scale.seconds(stage)
        if seconds:
            rate = round(scale.rows / seconds)
            note = f"{seconds:.1f} s"
            yield Figure(
                id=f"large.{stage}", title=f"large log: {says}", unit="rows/s", measured=rate, note=note
            )
    seconds = scale.state_seconds
    if seconds:
        yield Figure(
            id="large.state-at-id",
            title="large log: from fragments to the state at messages",
            unit="rows/s",
            measured=round(scale.rows / seconds),
            note=f"{seconds:.1f} s for {scale.rows:,} fragments",
        )


def checks(view: View) -> Iterator[Check]:
    """What must hold."""
    for job in JOBS:
        answers, differences, first = view.compared.jobs.get(job, (0, 0, None))
        yield Check(
            id=f"equal.{job}",
            says=f"{job}: the job says what the shipped classes say, and there is something to say",
            ok=answers > 0 and not differences,
            detail=first or f"{answers:,} answers",
        )
    for finding in view.compared.findings:
        yield Check(
            id=f"found.{finding.lie}",
            says=f"every wrong {finding.lie} that shows is found, and nothing else",
            ok=finding.visible == finding.found and not finding.unexpected,
            detail=f"{finding.injected} put in, {finding.visible} show, {finding.found} found, "
            f"{finding.unexpected} where nobody lied",
        )
    if view.scale is not None:
        yield from _large_checks(view.scale)


def _large_checks(scale: Scale) -> Iterator[Check]:
    yield Check(
        id="large.counted",
        says="large log: what came once and what is missing are all numbers up to the last",
        ok=scale.taken + scale.missing == scale.last,
        detail=f"{scale.taken:,} + {scale.missing:,} of {scale.last:,}",
    )
    yield Check(
        id="large.hashes",
        says="large log: every hash that a counting message carries is that of the state worked out",
        ok=scale.hashes > 0 and not scale.wrong_hashes,
        detail=f"{scale.hashes:,} hashes, {scale.wrong_hashes:,} wrong",
    )
    yield Check(
        id="large.generations",
        says="large log: no generation is out of turn",
        ok=not scale.generation_faults,
        detail=f"{scale.generation_faults:,} faults",
    )
    yield Check(
        id="large.sample",
        says="large log: states of some places are those of the shipped classes",
        ok=scale.sampled > 0 and not scale.sampled_wrong,
        detail=f"{scale.sampled} states, {scale.sampled_wrong} differ",
    )
