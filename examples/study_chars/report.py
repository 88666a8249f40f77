"""The report: figures, a check and a plot."""

from __future__ import annotations

from linnet.lab import bins
from linnet.lab.report import plots
from linnet.lab.report.parts import Check, Figure, Plot, Report, Section, StageCost
from linnet.lab.report.published import read_published


def report(counts: bins.Bins, texts: int, stages: tuple[StageCost, ...]) -> Report:
    """Build the report of the study from the measured counts alone."""
    published = read_published("examples.study_chars")
    over_100 = 100 * (1 - bins.share_within(counts, 100))
    return Report(
        study="chars",
        title="How long is a message?",
        abstract=(f"The lengths of {texts:,} messages with text, beside those of WhatsApp.",),
        parameters={},
        figures=(
            published.figure("chars.median", "Median length", "characters", bins.quantile(counts, 0.5)),
            published.figure("chars.over_100", "Longer than 100 characters", "%", over_100),
            Figure(id="chars.messages", title="Messages with text", unit="messages", measured=texts),
        ),
        checks=(
            Check(
                id="all-counted",
                says="Every message with text is counted once",
                ok=bins.total(counts) == texts,
                detail=f"{bins.total(counts):,} counted, {texts:,} there",
            ),
        ),
        sections=(Section(title="Distribution", plots=(_distribution(counts),)),),
        stages=stages,
        sources=published.sources,
    )


def _distribution(counts: bins.Bins) -> Plot:
    title = "Length of messages"
    svg = plots.ecdf({"": bins.ecdf(counts)}, title=title, x_label="length", unit="characters")
    return Plot(title=title, svg=svg, caption="Share of messages with at most so many characters.")
