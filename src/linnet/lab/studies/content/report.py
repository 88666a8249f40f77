"""The sections of the report."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.lab.report.parts import Section
from linnet.lab.studies.content import drawings, tables
from linnet.lab.studies.content.figures import PUBLISHED_NODES
from linnet.lab.studies.content.view import View
from linnet.lab.studies.content.workload import LONG, REPLICATION

_ABSENT = "Published variants that the simulation cannot run yet, and that are not in this study: {names}."

_STAGES = (
    "In each of four stages every subscriber asks for one thing more, and the publishers publish. The later "
    "stages are about topics that all subscribers share, so more nodes want each event."
)


def sections(view: View) -> Iterator[Section]:
    """All parts of the page."""
    absent = (_ABSENT.format(names=", ".join(view.absent)),) if view.absent else ()
    beside = any(key[2] == PUBLISHED_NODES for key in view.runs())
    if beside:
        yield Section(
            title="Beside the published tables",
            text=absent,
            plots=tuple(drawings.duplicates(view)),
            grids=(tables.duplicated(view), tables.costs(view), tables.latencies(view)),
        )
    yield Section(
        title="Networks",
        text=() if beside else absent,
        plots=tuple(drawings.latencies(view)),
        grids=(tables.networks(view),),
    )
    if view.stages(REPLICATION):
        yield Section(
            title="Backups and stages",
            text=(_STAGES,),
            plots=tuple(drawings.stages(view)),
            grids=(tables.replication(view),),
        )
    if view.stages(LONG):
        yield Section(title="A long run", grids=(tables.long_run(view),))
