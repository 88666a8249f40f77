"""The plots of the study."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.lab.report import plots
from linnet.lab.report.parts import Plot
from linnet.lab.report.plots import Line
from linnet.lab.studies.places.figures import MEASURED
from linnet.lab.studies.places.view import Scale


def large(scale: Scale) -> Iterator[Plot]:
    """What each job takes, and how much state there is."""
    spent = {stage: scale.seconds(stage) for stage, _ in MEASURED if scale.seconds(stage)}
    if spent:
        groups = {stage: {"": seconds} for stage, seconds in spent.items()}
        svg = plots.bars(groups, title="What each stage takes", y_label="time", unit="s")
        yield Plot(title="Seconds of each stage", svg=svg, caption=f"Over {scale.rows:,} fragments.")
    if scale.growth:
        line = Line(
            label="variables of a place",
            x=[message for message, _ in scale.growth],
            y=[mean for _, mean in scale.growth],
        )
        svg = plots.lines([line], title="State of a place", x_label="message", y_label="variables")
        yield Plot(
            title="Variables behind a message",
            svg=svg,
            caption="The mean of all places; state begins anew now and then.",
        )
