"""What must hold of a study of content."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.lab.report.parts import Check
from linnet.lab.studies.content.figures import PUBLISHED_NODES, name_of
from linnet.lab.studies.content.run import FILTERS
from linnet.lab.studies.content.view import View
from linnet.lab.studies.content.workload import LONG


def checks(view: View) -> Iterator[Check]:
    """All checks that the runs allow."""
    yield from _whole(view)
    yield from _duplicates(view)
    yield from _forgotten(view)


def _whole(view: View) -> Iterator[Check]:
    """Everything arrives, in networks of every size, and nothing else does."""
    for key, counts in view.counts.items():
        scenario, variant, nodes, f, stage = key
        yield Check(
            id=".".join(["whole", scenario, variant, str(nodes), *([str(f), str(stage)] if stage else [])]),
            says=f"{name_of(key)}: nothing is missing, and nothing is where nobody asked for it",
            ok=counts.expected > 0 and not counts.missing and not counts.unasked,
            detail=f"{counts.expected:,} expected, {counts.missing:,} missing, {counts.unasked:,} unasked",
        )


def _duplicates(view: View) -> Iterator[Check]:
    """Less comes twice than is published, in each cell of the published table."""
    for key in view.runs():
        scenario, variant, nodes, *_ = key
        published = view.printed(f"duplicated.{scenario}.{variant}")
        if published is None or nodes != PUBLISHED_NODES:
            continue
        ours = view.counts[key].duplicated_percent
        yield Check(
            id=f"duplicated.{scenario}.{variant}",
            says=f"{name_of(key)}: less comes twice than the published {published:g} %",
            ok=ours is not None and ours < published,
            detail=f"{ours} %",
        )


def _forgotten(view: View) -> Iterator[Check]:
    """Who left is forgotten everywhere."""
    keys = view.stages(LONG)
    for before, after in zip(keys[::2], keys[1::2], strict=True):
        had, has = view.mean(before, FILTERS), view.mean(after, FILTERS)
        yield Check(
            id=f"forgotten.{after[1]}",
            says=f"{name_of(after)}: fewer filters are left than before a group of subscribers left",
            ok=had is not None and has is not None and has < had,
            detail=f"{had} before, {has} after",
        )
