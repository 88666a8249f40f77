"""The sections of the report."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.lab.report.parts import Section
from linnet.lab.studies.streams import drawings, shapes, tables
from linnet.lab.studies.streams.view import View

_MODEL = (
    "These overlays are graphs without nodes, estimated by shortest paths; in a network whose nodes take no "
    "time that "
    "is what a flood takes, which a check above holds against every simulation. The static ones are "
    "baselines: a random "
    "regular graph made at once, and a ring in which everyone knows the next on both sides."
)


def sections(view: View) -> Iterator[Section]:
    """All parts of the page."""
    yield Section(
        title="Delay",
        plots=(drawings.delays(view), drawings.distribution(view)),
        grids=(tables.delays(view),),
    )
    yield Section(title="Predictability", plots=(drawings.accuracy(view),), grids=(tables.accuracy(view),))
    yield Section(
        title="Relative delay penalty", plots=(drawings.penalty(view),), grids=(tables.penalties(view),)
    )
    yield Section(title="Growth", plots=tuple(drawings.growth(view)), grids=(tables.growth(view),))
    yield Section(
        title="Hops and the overlays",
        plots=(drawings.hops(view),),
        grids=(shapes.overlays(view), shapes.control(view)),
    )
    redundant = tuple(drawings.duplicates(view))
    if redundant:
        yield Section(title="Redundancy", plots=redundant, grids=(shapes.redundancies(view),))
    yield Section(
        title="Graphs",
        text=(_MODEL,),
        plots=(drawings.diameters(view),),
        grids=(shapes.graphs(view), shapes.bounds(view)),
    )
    if view.randomness is not None:
        yield Section(
            title="Randomness", plots=(drawings.pairs(view.randomness),), grids=(shapes.randomness(view),)
        )
