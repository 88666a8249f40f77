"""The page of a report: one HTML file that opens without a network, in any browser, and prints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import resources
from numbers import Real

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape
from msgspec import Struct

from linnet.lab.metrics.comparison import percent_difference
from linnet.lab.report.parts import Cell, Figure, Plot, Report, Section, StageCost
from linnet.lab.report.words import NOTHING, bytes_text, cell_text, percent, seconds_text

_HERE = "linnet.lab.report"
_STAGES_NOTE = (
    "Memory is that of all processes of the job on the machine of the driver together, at its largest. "
    "A stage that stood already was not run again: its cost is that of the first time."
)


class _Shown(Struct, frozen=True):
    """One cell of a table: its text, and the number to sort by if it is one."""

    text: str
    key: float | None = None

    @property
    def numeric(self) -> bool:
        """Whether it lines up with other numbers."""
        return self.key is not None or self.text == NOTHING


class _Column(Struct, frozen=True):
    name: str
    numeric: bool


class _Table(Struct, frozen=True):
    columns: Sequence[_Column]
    rows: Sequence[Sequence[_Shown]]
    notes: Sequence[str] = ()
    title: str = ""
    note: str = ""


class _Drawing(Struct, frozen=True):
    title: str
    svg: Markup
    caption: str


class _Part(Struct, frozen=True):
    id: str
    title: str
    text: Sequence[str]
    plots: Sequence[_Drawing]
    grids: Sequence[_Table]


def page_of(report: Report) -> str:
    """The whole page."""
    environment = Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    sections = _sections(report.sections)
    contents = [("figures", "Figures: published beside measured")] if report.figures else []
    contents += [(section.id, section.title) for section in sections]
    contents += [("making", "How this was made")]
    return (
        environment.get_template("page.html.jinja")
        .render(
            report=report,
            css=Markup(_asset("page.css")),  # noqa: S704 - our own files
            script=Markup(_asset("page.js")),  # noqa: S704
            verdict=verdict(report),
            passed=[check for check in report.checks if check.ok],
            contents=contents,
            figures=_figures(report.figures),
            sections=sections,
            parameters=_table(("parameter", "value"), report.parameters.items()),
            quarantined=_table(("reason", "rows"), sorted(report.quarantined.items())),
            stages=_stages(report.stages),
            stages_note=_STAGES_NOTE,
            sources=_sources(report),
        )
        .lstrip()
    )


def verdict(report: Report) -> str:
    """Whether everything holds, in one sentence."""
    failed = len(report.failures())
    if failed:
        return f"{failed} of {len(report.checks)} checks {'does' if failed == 1 else 'do'} not hold"
    return f"All {len(report.checks)} checks hold" if len(report.checks) > 1 else "The check holds"


def _asset(name: str) -> str:
    return resources.files(_HERE).joinpath(name).read_text(encoding="utf-8")


def _cell(value: Cell) -> _Shown:
    if value is None or isinstance(value, str | bool):
        return _Shown(cell_text(value))
    return _Shown(cell_text(value), float(value))


def _table(names: Sequence[str], rows: Iterable[Sequence[Cell]], title: str = "", note: str = "") -> _Table:
    return _columns(names, [[_cell(value) for value in row] for row in rows], title=title, note=note)


def _columns(
    names: Sequence[str],
    rows: Sequence[Sequence[_Shown]],
    *,
    title: str = "",
    note: str = "",
    notes: Sequence[str] = (),
) -> _Table:
    """A head lines up with its column: to the right if that holds numbers, words here and there aside."""
    filled = [[row[place] for row in rows if row[place].text != NOTHING] for place in range(len(names))]
    columns = [
        _Column(name, 2 * sum(cell.numeric for cell in cells) > len(cells))
        for name, cells in zip(names, filled, strict=True)
    ]
    return _Table(columns, rows, notes, title, note)


def _figures(figures: Sequence[Figure]) -> _Table:
    """Each figure with its published one; notes below the table, numbered where they are used."""
    notes: dict[str, int] = {}
    rows = []
    for figure in figures:
        mark = ""
        if figure.note:
            mark = f" [{notes.setdefault(figure.note, len(notes) + 1)}]"
        rows.append(
            [
                _Shown(figure.title + mark),
                _Shown(figure.unit),
                _cell(figure.published),
                _cell(figure.measured),
                _difference(figure),
                _Shown(figure.source),
            ]
        )
    names = ("figure", "unit", "published", "measured", "difference", "source")
    return _columns(names, rows, notes=list(notes))


def _difference(figure: Figure) -> _Shown:
    value = difference(figure)
    return _Shown(NOTHING) if value is None else _Shown(percent(value), value)


def difference(figure: Figure) -> float | None:
    """How far the measured lies from the published, in % of it, if both are numbers."""
    if isinstance(figure.measured, Real) and isinstance(figure.published, Real):
        return percent_difference(float(figure.measured), float(figure.published))
    return None


def _stages(stages: Sequence[StageCost]) -> _Table:
    rows = [
        [
            _Shown(stage.name),
            _Shown(f"{stage.rows:,}", stage.rows),
            _Shown(seconds_text(stage.seconds), stage.seconds),
            _Shown(bytes_text(stage.peak_bytes), stage.peak_bytes),
            _Shown("stood already" if stage.reused else "run"),
        ]
        for stage in stages
    ]
    return _columns(("stage", "rows", "time", "peak memory", "this time"), rows)


def _sources(report: Report) -> list[str]:
    """Whole references first, then the places in them that figures name."""
    return list(
        dict.fromkeys([*report.sources, *(figure.source for figure in report.figures if figure.source)])
    )


def _sections(sections: Sequence[Section]) -> list[_Part]:
    parts, drawn = [], 0
    for number, section in enumerate(sections, 1):
        plots = []
        for plot in section.plots:
            drawn += 1
            plots.append(_Drawing(plot.title, inline(plot, f"plot{drawn}-"), plot.caption))
        grids = [_table(grid.columns, grid.rows, grid.title, grid.note) for grid in section.grids]
        parts.append(_Part(f"section{number}", section.title, section.text, plots, grids))
    return parts


def inline(plot: Plot, prefix: str) -> Markup:
    """The drawing as a part of a page: ids of its own, its caption as its description, no style for all.

    Ids are those of one drawing; two drawings in one page would share them.
    """
    svg = re.sub(r"<style.*?</style>", "", plot.svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}", svg)
    svg = re.sub(r'href="#', f'href="#{prefix}', svg)
    head, rest = svg[svg.index("<svg") :].split(">", 1)
    head = re.sub(r'\s(width|height|role|aria-\w+)="[^"]*"', "", head)
    rest = re.sub(r"\s*<title>.*?</title>", "", rest, count=1, flags=re.DOTALL)
    named = (
        f'{head} role="img" aria-labelledby="{prefix}title {prefix}text">'
        f'<title id="{prefix}title">{escape(plot.title)}</title>'
        f'<desc id="{prefix}text">{escape(plot.caption)}</desc>'
    )
    return Markup(named + rest)  # noqa: S704 - drawn by us, and its words escaped
