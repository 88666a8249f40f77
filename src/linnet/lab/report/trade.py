"""What one thing costs in another: curves whose points are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox
from msgspec import Struct
from numpy.typing import NDArray

from linnet.lab.errors import LabError
from linnet.lab.report.canvas import FAINT, NOTE_SIZE, add_legend, look, new_figure
from linnet.lab.report.ticks import TIME, dress, with_unit

_AROUND = ((5, -11), (-5, 6), (8, -3), (5, 6), (-5, -11), (-8, -3), (0, 8), (0, -14), (12, -18), (-12, 13))
"""Where a name may stand beside its point, the best place first, in points of print."""


class Choice(Struct, frozen=True):
    """One point of a trade-off: what is paid, what is had, and which setting this is."""

    x: float
    y: float
    label: str


def trade_off(
    curves: Mapping[str, Sequence[Choice]],
    *,
    title: str,
    x_label: str,
    y_label: str,
    x_unit: str = "",
    y_unit: str = "",
    log_x: bool = False,
    log_y: bool = False,
    note: str = "",
) -> Figure:
    """Curves through named choices, such as delivery against metadata held for each retention."""
    points = [choice for curve in curves.values() for choice in curve]
    if not points:
        raise LabError(f"the plot {title!r} has no points")
    if (log_x and min(point.x for point in points) <= 0) or (log_y and min(point.y for point in points) <= 0):
        raise LabError(
            f"a log axis of the plot {title!r} cannot show 0; leave it out and say so, or use a linear one"
        )
    figure = new_figure(title, 4.4, note)
    axes = figure.subplots()
    for place, (name, curve) in enumerate(curves.items()):
        seen = look(place)
        axes.plot(
            [choice.x for choice in curve],
            [choice.y for choice in curve],
            color=seen.colour,
            linestyle=seen.dash,
            marker=seen.marker,
            label=name,
        )
    axes.set_xscale("log" if log_x else "linear")
    axes.set_yscale("log" if log_y else "linear")
    axes.margins(0.09)
    axes.grid(color=FAINT, linewidth=0.7)
    axes.set_xlabel(with_unit(x_label, "" if log_x and x_unit == TIME else x_unit))
    axes.set_ylabel(with_unit(y_label, "" if log_y and y_unit == TIME else y_unit, 44))
    dress(axes.xaxis, [], x_unit, 6.0, log=log_x)
    dress(axes.yaxis, [], y_unit, 3.2, log=log_y)
    if list(curves) != [""]:
        add_legend(figure, len(curves))
    _name_points(figure, axes, points)
    return figure


def _name_points(figure: Figure, axes: Axes, points: Sequence[Choice]) -> None:
    """Each name at the first place around its point where it covers neither a point nor another name."""
    figure.draw_without_rendering()  # the layout decides where points are
    figure.set_layout_engine("none")
    spots = [axes.transData.transform((point.x, point.y)) for point in points]
    taken = [Bbox.from_bounds(x - 5, y - 5, 10, 10) for x, y in spots]
    for curve in axes.get_lines():
        taken += _along(axes.transData.transform(np.asarray(curve.get_xydata(), dtype=np.float64)))
    inside = axes.get_window_extent()
    for point in points:
        if point.label:
            name = _best_place(figure, axes, point, taken, inside)
            taken.append(name.get_window_extent())


def _along(corners: NDArray[np.float64]) -> list[Bbox]:
    """Small boxes on the way from corner to corner, so that no name stands on a line."""
    ways = np.linspace(0, 1, 12)[:, None]
    spots = [begin + ways * (end - begin) for begin, end in pairwise(corners)]
    return [Bbox.from_bounds(x, y, 1, 1) for spot in spots for x, y in spot]


def _best_place(figure: Figure, axes: Axes, point: Choice, taken: Sequence[Bbox], inside: Bbox) -> Annotation:
    canvas = figure.canvas
    assert isinstance(canvas, FigureCanvasAgg)  # noqa: S101
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    best: tuple[int, tuple[int, int]] | None = None
    name = axes.annotate(
        point.label, (point.x, point.y), xytext=_AROUND[0], textcoords="offset points", fontsize=NOTE_SIZE
    )
    for offset in _AROUND:
        _put(name, offset)
        box = name.get_window_extent(renderer)
        covered = box.count_overlaps(taken)
        outside = 0 if inside.containsx(box.x0) and inside.containsx(box.x1) else 2
        outside += 0 if inside.containsy(box.y0) and inside.containsy(box.y1) else 2
        if best is None or covered + outside < best[0]:
            best = covered + outside, offset
        if best[0] == 0:
            break
    if best is not None:
        _put(name, best[1])
    return name


def _put(name: Annotation, offset: tuple[int, int]) -> None:
    name.xyann = offset
    name.set_horizontalalignment("left" if offset[0] > 0 else "right" if offset[0] < 0 else "center")
