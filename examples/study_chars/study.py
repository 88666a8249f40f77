"""The study: from a table of messages to a report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from examples.study_chars.metrics import pooled
from examples.study_chars.report import report
from examples.study_chars.run import LENGTHS, lengths
from examples.study_chars.workload import texts
from msgspec import Struct

from linnet.lab.report.parts import Report
from linnet.lab.stages import Workshop, open_table
from linnet.lab.tables import MESSAGES


class Parameters(Struct, frozen=True):
    """The parameters of the study."""

    chats: Path
    """The folder that `linnet lab ingest` or `linnet lab generate chats` wrote."""


def study(workshop: Workshop, parameters: Parameters, tell: Callable[[str], None]) -> Report:
    """Run the stages that are missing, and report."""
    messages = open_table(workshop.spark, parameters.chats / "messages", MESSAGES)
    made = workshop.stage(
        "lengths", LENGTHS, lambda: lengths(texts(messages.frame)), inputs=[messages], parameters={}
    )
    tell("report")
    return report(pooled(made.frame), texts(messages.frame).count(), workshop.costs)
