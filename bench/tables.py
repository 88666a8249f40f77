"""A run as a table: for a terminal, or as Markdown for docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.results import Comparison, Measure
from bench.runs import Run

_HEADS = ("what", "median", "unit", "lowest, highest", "note")
_TARGET_HEADS = ("target", "value", "wanted", "")


def number(value: float) -> str:
    """Three digits that count, and no more."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def as_text(run: Run) -> str:
    """For a terminal."""
    lines = [f"{name:<10} {value}" for name, value in _facts(run)]
    for section, measures in _sections(run.measures):
        rows = [_measure_row(measure) for measure in measures]
        lines += ["", section.upper(), *_aligned([_HEADS, *rows])]
    if run.comparisons:
        lines += ["", "TARGETS", *_aligned([_TARGET_HEADS, *map(_comparison_row, run.comparisons)])]
    return "\n".join(lines)


def section_lines(run: Run, name: str) -> list[str]:
    """One section, for a terminal."""
    rows = [_measure_row(measure) for measure in run.measures if measure.section == name]
    return [name.upper(), *_aligned([_HEADS, *rows]), ""]


def as_markdown(run: Run) -> str:
    """For the page."""
    lines = [f"- {name}: {value}" for name, value in _facts(run)]
    for section, measures in _sections(run.measures):
        lines += ["", f"### {section.capitalize()}", "", *_piped(_HEADS, map(_measure_row, measures))]
    if run.comparisons:
        lines += ["", "### Targets", "", *_piped(_TARGET_HEADS, map(_comparison_row, run.comparisons))]
    return "\n".join(lines)


def _facts(run: Run) -> list[tuple[str, str]]:
    return [
        *run.machine.items(),
        ("runs", f"{run.runs}, medians told; {run.seconds:.0f} s in all"),
        ("load", f"{_load(run.load_before)} before, {_load(run.load_after)} after (1, 5, 15 minutes)"),
    ]


def _load(load: Sequence[float]) -> str:
    return " ".join(f"{each:.2f}" for each in load)


def _sections(measures: Iterable[Measure]) -> list[tuple[str, list[Measure]]]:
    sections: dict[str, list[Measure]] = {}
    for measure in measures:
        sections.setdefault(measure.section, []).append(measure)
    return list(sections.items())


def _measure_row(measure: Measure) -> tuple[str, ...]:
    if measure.median is None:
        return measure.name, "-", measure.unit, "", measure.note
    between = f"{number(min(measure.runs))} … {number(max(measure.runs))}" if len(measure.runs) > 1 else ""
    return measure.name, number(measure.median), measure.unit, between, measure.note


def _comparison_row(comparison: Comparison) -> tuple[str, ...]:
    wanted = f"{'≥' if comparison.at_least else '<'} {number(comparison.target)} {comparison.unit}"
    value = f"{number(comparison.value)} {comparison.unit}"
    return comparison.name, value, wanted, "reached" if comparison.reached else "missed"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _piped(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]
