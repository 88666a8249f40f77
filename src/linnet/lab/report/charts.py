"""Lines with their ranges, bars in groups, and clouds of points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from msgspec import Struct

from linnet.lab.errors import LabError
from linnet.lab.report.canvas import FAINT, INK, NOTE_SIZE, add_legend, look, new_figure
from linnet.lab.report.ticks import SHARE, TIME, dress, number, share, with_unit

_HEIGHT = 3.9
_INCHES = (6.0, 3.0)
"""About the length of both axes; the layout gives them the rest of the figure."""


class Line(Struct, frozen=True, kw_only=True):
    """One series of a line plot."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    """Lower end of a band around the line, such as the least of all repeats."""
    high: Sequence[float] | None = None
    published: bool = False
    """Drawn as open markers without a line, in the look of the series of `like`."""
    like: str = ""
    """Label of the series that this one stands beside; it then has the same colour."""


def lines(
    series: Sequence[Line],
    *,
    title: str,
    x_label: str,
    y_label: str,
    x_unit: str = "",
    y_unit: str = "",
    log_x: bool = False,
    log_y: bool = False,
    from_zero: bool = True,
    note: str = "",
) -> Figure:
    """Series over something, with bands from least to greatest and published points as open markers."""
    if not series:
        raise LabError(f"the plot {title!r} has no series")
    figure = new_figure(title, _HEIGHT, note)
    axes = figure.subplots()
    order = {line.label: place for place, line in enumerate(one for one in series if not one.like)}
    for line in series:
        _line(axes, line, order.get(line.like or line.label, len(order)))
    every = [
        value
        for line in series
        for part in (line.y, line.low, line.high)
        for value in (() if part is None else part)
    ]
    _scale(axes, [x for line in series for x in line.x], every, log_x=log_x, log_y=log_y, from_zero=from_zero)
    _label(axes, x_label, y_label, x_unit, y_unit, log_x=log_x, log_y=log_y)
    dress(axes.xaxis, [x for line in series for x in line.x], x_unit, _INCHES[0], log=log_x)
    dress(axes.yaxis, [], y_unit, _INCHES[1], log=log_y)
    add_legend(figure, len(series))
    return figure


def _line(axes: Axes, line: Line, place: int) -> None:
    seen = look(place)
    if line.published:
        axes.plot(
            line.x,
            line.y,
            linestyle="none",
            marker=seen.marker,
            markersize=8,
            markerfacecolor="white",
            markeredgecolor=seen.colour,
            markeredgewidth=1.4,
            label=line.label,
            zorder=2,
        )
        return
    axes.plot(
        line.x, line.y, color=seen.colour, linestyle=seen.dash, marker=seen.marker, label=line.label, zorder=3
    )
    if line.low is not None and line.high is not None:
        axes.fill_between(line.x, line.low, line.high, color=seen.colour, alpha=0.15, linewidth=0, zorder=1)


def bars(
    groups: Mapping[str, Mapping[str, float | None]],
    *,
    title: str,
    y_label: str,
    x_label: str = "",
    unit: str = SHARE,
    log_y: bool = False,
    note: str = "",
) -> Figure:
    """Bars beside each other in groups, such as a share per margin and mode; None is told as missing."""
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    if not names:
        raise LabError(f"the plot {title!r} has no bars")
    figure = new_figure(title, 3.5, note)
    axes = figure.subplots()
    width = 0.82 / len(names)
    for place, name in enumerate(names):
        seen = look(place)
        at = [spot - 0.41 + (place + 0.5) * width for spot in range(len(groups))]
        heights = [group.get(name) for group in groups.values()]
        drawn = [height or 0.0 for height in heights]
        axes.bar(
            at,
            drawn,
            width * 0.92,
            label=name,
            color=_pale(seen.colour),
            edgecolor=seen.colour,
            hatch=seen.hatch,
        )
        if len(names) * len(groups) <= 20:
            _tell_heights(axes, at, heights, unit)
    every = [height for group in groups.values() for height in group.values() if height is not None]
    _scale(axes, [], every, log_x=False, log_y=log_y, from_zero=True)
    axes.margins(x=0.02)
    axes.set_xticks(range(len(groups)), list(groups))
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    axes.set_xlabel(x_label)
    axes.set_ylabel(with_unit(y_label, unit, 36))
    dress(axes.yaxis, [], unit, 2.4, log=log_y)
    if names != [""]:
        add_legend(figure, len(names))
    return figure


def _tell_heights(axes: Axes, at: Iterable[float], heights: Iterable[float | None], unit: str) -> None:
    for place, height in zip(at, heights, strict=True):
        text = (
            "none" if height is None else share(height) if unit == SHARE else number(float(f"{height:.3g}"))
        )
        axes.annotate(
            text,
            (place, height or 0.0),
            xytext=(0, 2),
            textcoords="offset points",
            horizontalalignment="center",
            verticalalignment="bottom",
            fontsize=NOTE_SIZE - 0.5,
        )


def scatter(
    clouds: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    title: str,
    x_label: str,
    y_label: str,
    x_unit: str = "",
    y_unit: str = "",
    log_x: bool = False,
    log_y: bool = False,
    diagonal: bool = False,
    note: str = "",
) -> Figure:
    """Points of each name; with a diagonal where both axes measure the same and should agree."""
    xs = [x for cloud in clouds.values() for x in cloud[0]]
    ys = [y for cloud in clouds.values() for y in cloud[1]]
    if not xs:
        raise LabError(f"the plot {title!r} has no points")
    figure = new_figure(title, 4.4, note)
    axes = figure.subplots()
    size = 26 if len(xs) < 200 else 9
    for place, (name, (x, y)) in enumerate(clouds.items()):
        seen = look(place)
        # So many marks are lighter as a picture; axes and words stay text.
        axes.scatter(
            x,
            y,
            s=size,
            marker=seen.marker,
            facecolor=_pale(seen.colour),
            edgecolor=seen.colour,
            linewidth=0.9,
            label=name,
            rasterized=len(xs) > 3000,
            zorder=3,
        )
    _scale(axes, xs, ys, log_x=log_x, log_y=log_y, from_zero=False)
    if diagonal:
        low, high = min(*xs, *ys), max(*xs, *ys)
        axes.plot(
            [low, high], [low, high], color=INK, linewidth=0.9, linestyle=(0, (4, 3)), label="equal", zorder=2
        )
    _label(axes, x_label, y_label, x_unit, y_unit, log_x=log_x, log_y=log_y)
    dress(axes.xaxis, [], x_unit, _INCHES[0], log=log_x)
    dress(axes.yaxis, [], y_unit, _INCHES[1], log=log_y)
    add_legend(figure, len(clouds) + diagonal if list(clouds) != [""] else 0)
    return figure


def _scale(
    axes: Axes, xs: Sequence[float], ys: Sequence[float], *, log_x: bool, log_y: bool, from_zero: bool
) -> None:
    """Limits and grid; a log axis must not lose a value of 0 silently, so it refuses it."""
    for values, log, name in ((xs, log_x, "x"), (ys, log_y, "y")):
        if log and any(value <= 0 for value in values):
            raise LabError(
                f"a log {name} axis cannot show {min(values)}; leave it out and say so, or use a linear one"
            )
        if any(not isfinite(value) for value in values):
            raise LabError(f"the {name} axis cannot show {next(v for v in values if not isfinite(v))}")
    axes.set_xscale("log" if log_x else "linear")
    axes.set_yscale("log" if log_y else "linear")
    axes.margins(x=0.04, y=0.08)
    if from_zero and not log_y and ys and min(ys) >= 0:
        axes.set_ylim(0, max(ys) * 1.1 or 1)
    axes.grid(color=FAINT, linewidth=0.7)


def _label(
    axes: Axes, x_label: str, y_label: str, x_unit: str, y_unit: str, *, log_x: bool, log_y: bool
) -> None:
    axes.set_xlabel(with_unit(x_label, "" if log_x and x_unit == TIME else x_unit))
    axes.set_ylabel(with_unit(y_label, "" if log_y and y_unit == TIME else y_unit, 40))


def _pale(colour: str) -> str:
    """The colour mixed with white, so that hatches and edges show on it."""
    parts = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return "#" + "".join(f"{(part + 2 * 255) // 3:02x}" for part in parts)
