"""An audit from its files to its report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from pyspark.sql import functions as F

from linnet.lab.audit.findings import Findings, find
from linnet.lab.audit.labels import node_labels
from linnet.lab.audit.pipeline import Parameters, Tables, run_stages
from linnet.lab.audit.report import report_of
from linnet.lab.audit.sources import find_sources
from linnet.lab.errors import LabError
from linnet.lab.report.parts import Report
from linnet.lab.report.writing import write_report
from linnet.lab.stages import Workshop


class Audited(Struct, frozen=True):
    """What came of an audit."""

    report: Report
    findings: Findings
    labels: dict[str, str]
    quarantined: dict[str, int]


def audit(workshop: Workshop, given: Sequence[Path], parameters: Parameters) -> Audited:
    """Read these traces, make the tables, write the report into the workshop's folder."""
    sources = find_sources(given, workshop.out)
    tables = run_stages(workshop, sources, parameters)
    if tables.nodes.rows == 0:
        raise LabError("the traces hold no rows")
    findings = find(tables, parameters.skew_ms * 1000)
    quarantined = _quarantined(tables)
    labels = node_labels(sources)
    report = report_of(findings, labels, parameters, quarantined, workshop.costs)
    write_report(report, workshop.out)
    return Audited(report, findings, labels, quarantined)


def _quarantined(tables: Tables) -> dict[str, int]:
    if tables.quarantine is None or not tables.quarantine.rows:
        return {}
    counts = tables.quarantine.frame.groupBy("reason").agg(F.count("*").alias("lines")).collect()
    return {row.reason: row.lines for row in counts}
