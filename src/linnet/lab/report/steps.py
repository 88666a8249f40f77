"""Distributions of durations as steps, over all that was sent.

A curve that ends below 100 % is not cut off: the rest never came, and the figure says how much that is. On
a log axis, which has no 0, what took no time stands on a strip of its own before a break of the axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, log10
from typing import TypeAlias

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from msgspec import Struct

from linnet.lab.errors import LabError
from linnet.lab.report.canvas import FAINT, NOTE_SIZE, add_legend, look, new_figure
from linnet.lab.report.ticks import SHARE, TIME, dress, share, with_unit

Steps: TypeAlias = tuple[Sequence[float], Sequence[float]]
"""Durations, rising, and the share of all that took at most so long (`linnet.lab.bins.ecdf`)."""


class _Range(Struct, frozen=True):
    """Where an axis begins and ends, and where 0 is drawn if it is there."""

    low: float
    high: float
    zero: float | None
    edge: float
    """Where the strip of the 0 ends."""


def ecdf(
    series: Mapping[str, Steps],
    *,
    title: str,
    x_label: str,
    y_label: str = "share of all",
    unit: str = TIME,
    log_x: bool = True,
    missing: str = "never",
    note: str = "",
) -> Figure:
    """One distribution for each name; a series without steps is one of which nothing came.

    `missing` says what became of what a curve lacks to 100 %: it never came, stayed empty, was lost.
    """
    return ecdf_panels(
        {"": series},
        title=title,
        x_label=x_label,
        y_label=y_label,
        unit=unit,
        log_x=log_x,
        missing=missing,
        note=note,
    )


def ecdf_panels(
    panels: Mapping[str, Mapping[str, Steps]],
    *,
    title: str,
    x_label: str,
    y_label: str = "share of all",
    unit: str = TIME,
    log_x: bool = True,
    missing: str = "never",
    note: str = "",
) -> Figure:
    """Distributions beside each other, such as one panel for each margin, all with the same axes."""
    names = list(dict.fromkeys(name for series in panels.values() for name in series))
    if not names:
        raise LabError(f"the plot {title!r} has no series")
    looks = {name: number for number, name in enumerate(names)}
    columns = 1 if len(panels) == 1 else 2
    rows = ceil(len(panels) / columns)
    figure = new_figure(title, 3.9 if len(panels) == 1 else 0.9 + 2.2 * rows, note)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    limits = _range([steps for series in panels.values() for steps in series.values()], log=log_x)
    spaces = list(grid.flat)
    for axes, (panel, series) in zip(spaces, panels.items(), strict=False):
        axes.set_title(panel)
        ends = [_draw(axes, limits, name, looks[name], steps) for name, steps in series.items()]
        _dress(axes, limits, unit, 5.4 / columns, log=log_x)
        _tell_ends(axes, limits, ends, 3.2 if columns == 1 else 1.6, missing)
    for axes in spaces[len(panels) :]:
        axes.set_visible(False)
    for number, axes in enumerate(spaces[: len(panels)]):
        axes.tick_params(labelbottom=True)
        if number // columns == rows - 1:
            axes.set_xlabel(with_unit(x_label, "" if unit == TIME and log_x else unit))
        if number % columns == 0:
            axes.set_ylabel(y_label)
    _legend(figure, spaces, names)
    return figure


def _range(series: Sequence[Steps], *, log: bool) -> _Range:
    durations = [value for steps in series for value in steps[0]]
    positive = [value for value in durations if value > 0]
    high = max(positive, default=1.0)
    if not log:
        return _Range(0.0, high * 1.02, None, 0.0)
    first = min(min(positive, default=1.0), high / 10)
    decades = log10(high / first)
    high *= 10 ** (0.02 * decades)
    if len(positive) == len(durations):
        return _Range(first * 10 ** (-0.02 * decades), high, None, 0.0)
    return _Range(
        first * 10 ** (-0.16 * decades),
        high,
        first * 10 ** (-0.10 * decades),
        first * 10 ** (-0.05 * decades),
    )


def _draw(axes: Axes, limits: _Range, name: str, number: int, steps: Steps) -> tuple[float, str]:
    """Draws one curve to the right end of the axis; returns where it ends, and in which colour."""
    start = limits.low if limits.zero is None else limits.zero
    places, heights = [start], [0.0]
    for place, height in zip(*steps, strict=True):
        places.append(start if place <= 0 else place)
        heights.append(height)
    places.append(limits.high)
    heights.append(heights[-1])
    seen = look(number)
    axes.plot(places, heights, drawstyle="steps-post", color=seen.colour, linestyle=seen.dash, label=name)
    return heights[-1], seen.colour


def _dress(axes: Axes, limits: _Range, unit: str, inches: float, *, log: bool) -> None:
    if log:
        axes.set_xscale("log")
    axes.set_xlim(limits.low, limits.high)
    axes.set_ylim(-0.015, 1.03)
    axes.grid(color=FAINT, linewidth=0.7)
    dress(axes.xaxis, [], unit, inches, log=log)
    dress(axes.yaxis, [], SHARE, 3.0, log=False)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    if limits.zero is not None:
        places = [place for place in axes.get_xticks() if place > limits.edge]
        names = [axes.xaxis.get_major_formatter()(place, at) for at, place in enumerate(axes.get_xticks())]
        axes.set_xticks([limits.zero, *places], ["0", *names[len(names) - len(places) :]])
        axes.axvspan(limits.low, limits.edge, color="#eef1f4", linewidth=0, zorder=0)
        axes.plot(
            [limits.edge],
            [0],
            marker=[(-1, -2), (1, 2)],
            markersize=9,
            color="#6b7480",
            clip_on=False,
            transform=axes.get_xaxis_transform(),
            zorder=5,
        )


def _tell_ends(
    axes: Axes, limits: _Range, ends: Sequence[tuple[float, str]], inches: float, missing: str
) -> None:
    """How much never came, beside the end of each curve that ends below all; names kept apart."""
    apart = NOTE_SIZE * 1.25 / 72 / inches
    told = [(height, colour) for height, colour in ends if height < 1]
    below = 2.0
    for height, colour in sorted(told, reverse=True):
        below = min(height, below - apart)
        axes.annotate(
            f"{share(1 - height)} {missing}",
            (limits.high, height),
            xytext=(1.03, max(below, 0) if len(told) == 1 else below),
            textcoords=("axes fraction", "data"),
            fontsize=NOTE_SIZE,
            verticalalignment="center",
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.9, "shrinkA": 1, "shrinkB": 0},
            annotation_clip=False,
        )


def _legend(figure: Figure, spaces: Sequence[Axes], names: Sequence[str]) -> None:
    """One legend for all panels, also for series that the first panel lacks."""
    if len(names) < 2 and not names[0]:
        return
    for number, name in enumerate(names):
        present = spaces[0].get_legend_handles_labels()[1]
        if name not in present:
            seen = look(number)
            spaces[0].plot([], [], color=seen.colour, linestyle=seen.dash, label=name)
    add_legend(figure, len(names))
