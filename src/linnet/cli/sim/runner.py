"""The shared parts of ``linnet sim`` commands: options, runs of a scenario or of the open world, outcomes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

import typer
from msgspec import Struct

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import JsonOption, Options
from linnet.cli.output import progress_bar, say_json, say_table, warn
from linnet.core.errors import ConfigError

if TYPE_CHECKING:
    from linnet.sim.nemesis.budget import Spent
    from linnet.sim.nemesis.course import NemesisReport
    from linnet.trace.columns import ColumnTrace


Scenario = TypeVar("Scenario")
Report = TypeVar("Report")
Progress: TypeAlias = Callable[[float, str], None]
"""Called with the share of a run that is done, and its present step."""

_EXTRA = ("numpy", "scipy", "pyarrow")

SeedOption = Annotated[int, typer.Option(min=0, help="Equal seeds give equal runs.")]
LatencyOption = Annotated[
    str,
    typer.Option(
        metavar="TABLE",
        help="aws (16 regions), constant:MS, or a CSV file of your own: a first line region,A,B and for each "
        "region a line A,0.1,12.5 with the milliseconds one way from it to A, B and so on.",
    ),
]


@contextmanager
def simulation() -> Generator[None]:
    """Report a missing package with the extra that has it, and a wrong configuration as a usage error."""
    try:
        yield
    except ConfigError as error:
        raise Failure(str(error), ExitCode.USAGE) from error
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRA:
            raise
        raise Failure(
            f"simulation needs {error.name}, which is not installed: pip install 'linnet[sim]'"
        ) from error


def show_outcome(
    report: Struct,
    rows: Sequence[tuple[str, object]],
    as_json: bool,
    is_good: bool,
    complaints: Iterable[str],
) -> None:
    """Print the outcome of a run; exits 1, with the problems, if it is not as expected."""
    if as_json:
        say_json(report)
    else:
        say_table(("of the run", "is "), rows)
    if not is_good:
        for line in complaints:
            warn(line)
        raise typer.Exit(ExitCode.FAILED)


_SHOWN = 5


class NemesisRuns(Struct, frozen=True, kw_only=True):
    """The outcome of the runs with many seeds."""

    way: str
    seeds: int
    failed: tuple[int, ...]
    """Seeds with a broken promise."""
    coverage: dict[str, int]
    """How often each kind of fault struck."""
    worst_dials: int
    """The most dials in a minute from one node to one that did not answer."""
    spent: dict[str, Spent]
    """The most messages and steps of one node in a minute, by situation."""


@dataclass(frozen=True)
class RunOptions(Options):
    """How a scenario is run: with a record of it, or as the open world, and how it is printed."""

    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE.parquet", dir_okay=False, help="Write every record of the run."),
    ] = None
    nemesis: Annotated[
        str | None,
        typer.Option(
            "--nemesis",
            metavar="FAULTS",
            help="Let nodes restart, move, pause, lose their clock and disk: all, or kinds such as "
            "partition,clock,kill. The other options but --seed and --seeds do not count then.",
        ),
    ] = None
    seeds: Annotated[
        int,
        typer.Option("--seeds", min=1, max=100_000, help="With --nemesis: so many seeds, from --seed on."),
    ] = 1
    as_json: JsonOption = False

    def run_scenario(
        self, run: Callable[[Scenario, ColumnTrace, Progress], Report], scenario: Scenario
    ) -> Report:
        """Run a scenario, and write every record of the run to a file if one is named."""
        from linnet.trace.columns import ColumnTrace

        kept = ColumnTrace()
        with progress_bar(self.as_json) as progress:
            report = run(scenario, kept, progress)
        if self.trace is not None:
            try:
                kept.write_parquet(self.trace)
            except OSError as error:
                raise Failure(f"{self.trace}: cannot be written: {error.strerror or error}") from error
        return report

    def run_nemesis(self, faults: str, way: str, seed: int) -> None:
        """Run the open world for one kind of subscription; exits 1 if a promise was broken."""
        reports = _run_seeds(faults, way, range(seed, seed + self.seeds), self.as_json)
        if self.seeds == 1:
            _show_one(reports[0], self.as_json)
        else:
            _show_many(way, reports, self.as_json)
        failed = [report for report in reports if not report.ok]
        for report in failed:
            for complaint in report.complaints[:_SHOWN]:
                warn(f"seed {report.seed}: {complaint.rule.value}: {complaint.text}")
            if len(report.complaints) > _SHOWN:
                warn(f"seed {report.seed}: and {len(report.complaints) - _SHOWN} more")
        if failed:
            raise typer.Exit(ExitCode.FAILED)


def _run_seeds(faults: str, way: str, seeds: range, quiet: bool) -> list[NemesisReport]:
    with simulation():
        from linnet.sim.nemesis.course import chosen_faults, run_course

        chosen = chosen_faults(faults)
        reports: list[NemesisReport] = []
        with progress_bar(quiet) as progress:
            for number in seeds:
                share = (number - seeds.start) / len(seeds)

                def tell(done: float, what: str, share: float = share, number: int = number) -> None:
                    progress(share + done / len(seeds), f"seed {number}: {what}")

                reports.append(run_course(way, number, chosen, tell))
    return reports


def _show_many(way: str, reports: list[NemesisReport], as_json: bool) -> None:
    from linnet.sim.nemesis.budget import most_spent
    from linnet.sim.nemesis.course import coverage_of

    runs = NemesisRuns(
        way=way,
        seeds=len(reports),
        failed=tuple(report.seed for report in reports if not report.ok),
        coverage=coverage_of(reports),
        worst_dials=max(report.worst_dials for report in reports),
        spent=most_spent(report.spent for report in reports),
    )
    if as_json:
        say_json(runs)
        return
    rows: list[tuple[str, object]] = [
        (name.lower().replace("_", " "), count) for name, count in runs.coverage.items()
    ]
    rows += [("seeds", runs.seeds), ("seeds that failed", len(runs.failed))]
    say_table(("fault", way), [*rows, *_costs(runs.worst_dials, runs.spent)])


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
