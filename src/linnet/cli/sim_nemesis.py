"""``linnet sim … --nemesis``: the open world instead of a scenario, one seed or many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from linnet.cli.exits import ExitCode
from linnet.cli.output import say_json, say_table, warn
from linnet.cli.simulating import progress_bar, simulation

if TYPE_CHECKING:
    from linnet.sim.nemesis.budget import Spent
    from linnet.sim.nemesis.course import NemesisReport

NemesisOption = Annotated[
    str | None,
    typer.Option(
        "--nemesis",
        metavar="FAULTS",
        help="Let nodes restart, move, pause, lose their clock and disk: all, or kinds such as "
        "partition,clock,kill. The other options but --seed and --seeds do not count then.",
    ),
]
SeedsOption = Annotated[
    int, typer.Option("--seeds", min=1, max=100_000, help="With --nemesis: so many seeds, from --seed on.")
]
_SHOWN = 5


class NemesisRuns(Struct, frozen=True, kw_only=True):
    """What came of many seeds."""

    way: str
    seeds: int
    failed: tuple[int, ...]
    """Seeds in which a promise was not kept."""
    coverage: dict[str, int]
    """How often each kind of fault struck."""
    worst_dials: int
    """The most dials in a minute from one node to one that did not answer."""
    spent: dict[str, Spent]
    """The most messages and steps of one node in a minute, by situation."""


def run_nemesis(way: str, faults: str, seed: int, seeds: int, as_json: bool) -> None:
    """Run the open world for one way to subscribe; exits 1 if a promise was not kept."""
    with simulation():
        from linnet.sim.nemesis.budget import most_spent
        from linnet.sim.nemesis.course import chosen_faults, coverage_of, run_course

        chosen = chosen_faults(faults)
        reports: list[NemesisReport] = []
        with progress_bar(as_json) as progress:
            for number in range(seed, seed + seeds):
                share = (number - seed) / seeds

                def tell(done: float, what: str, share: float = share, number: int = number) -> None:
                    progress(share + done / seeds, f"seed {number}: {what}")

                reports.append(run_course(way, number, chosen, tell))
    failed = [report for report in reports if not report.ok]
    if seeds == 1:
        _show_one(reports[0], as_json)
    else:
        runs = NemesisRuns(
            way=way,
            seeds=seeds,
            failed=tuple(report.seed for report in failed),
            coverage=coverage_of(reports),
            worst_dials=max(report.worst_dials for report in reports),
            spent=most_spent(report.spent for report in reports),
        )
        if as_json:
            say_json(runs)
        else:
            rows: list[tuple[str, object]] = [
                (name.lower().replace("_", " "), count) for name, count in runs.coverage.items()
            ]
            rows += [("seeds", seeds), ("seeds that failed", len(failed))]
            say_table(("fault", way), [*rows, *_costs(runs.worst_dials, runs.spent)])
    for report in failed:
        for complaint in report.complaints[:_SHOWN]:
            warn(f"seed {report.seed}: {complaint.rule.value}: {complaint.text}")
        if len(report.complaints) > _SHOWN:
            warn(f"seed {report.seed}: and {len(report.complaints) - _SHOWN} more")
    if failed:
        raise typer.Exit(ExitCode.FAILED)


def _show_one(report: NemesisReport, as_json: bool) -> None:
    if as_json:
        say_json(report)
        return
    rows: list[tuple[str, object]] = [("fault", line) for line in report.faults]
    rows += [
        ("promises not kept", len(report.complaints)),
        *_costs(report.worst_dials, report.spent),
        ("virtual time, s", report.virtual_seconds),
        ("trace_sha256", report.trace_sha256),
    ]
    say_table(("of the run", "is "), rows)


def _costs(worst_dials: int, spent: dict[str, Spent]) -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = [("dials a minute in vain, at most", worst_dials)]
    for situation, most in spent.items():
        rows.append((f"messages a minute of a node, {situation}", most.messages))
        rows.append((f"steps a minute of a node, {situation}", most.steps))
    return rows
