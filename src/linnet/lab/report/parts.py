"""What a report is made of. Studies fill these; `linnet.lab.report.writing` makes files of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

Cell: TypeAlias = str | int | float | None


class Figure(Struct, frozen=True, kw_only=True):
    """One number of a study, with the published one if there is one."""

    id: str
    """Stable, lower case with dots: ``undelivered.relays.margin1``."""
    title: str
    unit: str
    measured: Cell
    published: Cell = None
    """A number, or the words of the source where it prints none."""
    source: str = ""
    """Where the published one stands: author, year, table or section."""
    note: str = ""
    """What must be known to compare the two: errors of the source, differences of set-up."""


class Check(Struct, frozen=True, kw_only=True):
    """Something that must hold. A study with one that does not exits with a status other than 0."""

    id: str
    says: str
    ok: bool
    detail: str = ""
    """What was seen; of a failure the first example."""


class Grid(Struct, frozen=True, kw_only=True):
    """A table for people."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


class Plot(Struct, frozen=True, kw_only=True):
    """A drawing."""

    title: str
    svg: str
    caption: str
    """What to see in it; also its text for those who cannot."""


class Section(Struct, frozen=True, kw_only=True):
    """A part of the page."""

    title: str
    text: tuple[str, ...] = ()
    """Paragraphs."""
    plots: tuple[Plot, ...] = ()
    grids: tuple[Grid, ...] = ()


class StageCost(Struct, frozen=True, kw_only=True):
    """What one stage took."""

    name: str
    rows: int
    seconds: float
    peak_bytes: int
    """Memory of all processes of the job on this machine together, at its largest."""
    reused: bool
    """Whether it stood already and nothing was done; the cost is then that of the first time."""


class Report(Struct, frozen=True, kw_only=True):
    """All that a study says."""

    study: str
    title: str
    abstract: tuple[str, ...]
    parameters: dict[str, Cell]
    figures: tuple[Figure, ...]
    checks: tuple[Check, ...] = ()
    sections: tuple[Section, ...] = ()
    stages: tuple[StageCost, ...] = ()
    quarantined: dict[str, int] = {}
    """Rows that were not used, by reason."""
    sources: tuple[str, ...] = ()
    """Whole references of what is cited."""

    @property
    def ok(self) -> bool:
        """Whether everything holds that must."""
        return all(check.ok for check in self.checks)

    def failures(self) -> Sequence[Check]:
        """What does not hold."""
        return [check for check in self.checks if not check.ok]
