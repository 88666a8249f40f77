"""The sections of the report."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.lab.report.parts import Section
from linnet.lab.studies.groups import drawings, tables
from linnet.lab.studies.groups.targets import Target
from linnet.lab.studies.groups.view import View


def sections(view: View, found: list[Target]) -> Iterator[Section]:
    """All parts of the page."""
    missed = [each for each in found if not each.met]
    text = [f"{len(found) - len(missed)} of {len(found)} limits are kept."]
    text += [f"Missed: {each.says}. {each.detail}." for each in missed]
    yield Section(title="Targets", text=tuple(text), grids=(tables.reached(found),))
    yield Section(title="Bytes", plots=(drawings.traffic(view),), grids=(tables.sent(view),))
    yield Section(
        title="Processor time",
        text=(_machine(view),),
        plots=drawings.all_times(view),
        grids=(tables.spent(view),),
    )
    yield Section(title="Growth", plots=tuple(drawings.scaling(view)), grids=(tables.growths(view),))
    yield Section(title="Acknowledgements", grids=(tables.batches(view),))
    yield Section(title="Keys", grids=(tables.called(view),))


def _machine(view: View) -> str:
    load = view.outcomes.load()
    told = "unknown" if load is None else f"{load[0]:.1f} to {load[1]:.1f}"
    return (
        "Processor time, not time on the wall: what else the machine does takes no part in it, but for "
        f"caches and cores that share one. Its load average was {told} meanwhile. No garbage is "
        "collected in a run."
    )
