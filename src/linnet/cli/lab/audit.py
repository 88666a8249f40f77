"""``linnet lab audit``: what became of every message, by the traces of nodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode
from linnet.cli.lab.options import MasterOption, MemoryOption, OutOption, lab_extra, workshop
from linnet.cli.options import JsonOption, examples
from linnet.cli.output import say, say_raw, say_table, warn

if TYPE_CHECKING:
    from linnet.lab.audit.audit import Audited

EPILOG = examples(
    "linnet lab audit ~/.local/share/linnet/trace /mnt/other/trace --out audit",
    "linnet lab audit run.parquet --grace 30 --out audit --json",
    "linnet demo --keep run && linnet lab audit run --out audit",
)

Traces = Annotated[
    list[Path],
    typer.Argument(metavar="TRACE...", help="Files of traces (JSON lines, Parquet), or folders with some."),
]
Grace = Annotated[
    float,
    typer.Option(
        min=0, metavar="SECONDS", help="How long before a trace ends an event may still be on its way."
    ),
]
Skew = Annotated[float, typer.Option(min=0, metavar="MS", help="How far clocks may differ before a warning.")]


def audit(
    traces: Traces,
    out: OutOption,
    grace: Grace = 10.0,
    skew: Skew = 10.0,
    master: MasterOption = "local[*]",
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find out what became of every message, by the traces of nodes.

    For each topic and reader: what was owed, what was delivered and how fast, what was not and why.
    Exits 1 if anything was lost without a record. Tables, report.html and summary.json go to --out.
    Traces of level full tell all; those of level loss only counts.
    """
    with lab_extra():
        from linnet.lab.audit.pipeline import Parameters
        from linnet.lab.audit.sources import find_sources

        find_sources(traces, out)  # what is no trace is told before Spark starts
        parameters = Parameters(grace_ms=round(grace * 1000), skew_ms=round(skew))
    with workshop(out, master, memory, as_json) as made:
        from linnet.lab.audit.audit import audit as run_audit

        audited = run_audit(made, traces, parameters)
    if as_json:
        say_raw((out / "summary.json").read_bytes().strip())
    else:
        _say(audited, out)
    for check in audited.report.failures():
        warn(f"linnet: does not hold: {check.says}: {check.detail}")
    if not audited.report.ok:
        raise typer.Exit(ExitCode.FAILED)


def _say(audited: Audited, out: Path) -> None:
    from linnet.lab.audit.report import READERS, reader_rows

    rows = reader_rows(audited.findings, audited.labels)
    rows.sort(key=lambda row: (row[1], row[0]))
    say_table(READERS, [tuple("-" if cell is None else cell for cell in row) for row in rows])
    for line in audited.report.abstract:
        say(line)
    say(f"report: {out / 'report.html'}")
