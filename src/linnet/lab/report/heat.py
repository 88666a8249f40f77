"""Matrices as heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from linnet.lab.errors import LabError
from linnet.lab.report.canvas import INK, WIDTH, new_figure
from linnet.lab.report.ticks import number, with_unit

_MOST_CELLS = 400
"""Per side; larger matrices are drawn as means of blocks, as no screen shows more."""
_WRITTEN = 16
"""Up to so many rows and columns each cell also says its number."""


def matrix(
    values: Sequence[Sequence[float]] | NDArray[np.float64] | NDArray[np.int64],
    *,
    title: str,
    value_label: str,
    unit: str = "",
    x_label: str = "",
    y_label: str = "",
    x_names: Sequence[str] = (),
    y_names: Sequence[str] = (),
    note: str = "",
) -> Figure:
    """A heat map from dark (low) to light (high); few cells also say their numbers. NaN stays white."""
    cells = np.asarray(values, dtype=np.float64)
    if cells.ndim != 2 or cells.size == 0:
        raise LabError(
            f"the plot {title!r} needs a table of rows and columns, not one of shape {cells.shape}"
        )
    if (x_names and len(x_names) != cells.shape[1]) or (y_names and len(y_names) != cells.shape[0]):
        raise LabError(f"the plot {title!r} has other numbers of names than of rows or columns")
    shown, block = _blocks(cells)
    if block > 1:
        note = f"{note} Each dot is the mean of {block} by {block} cells.".strip()
    figure = new_figure(title, min(8.0, max(2.4, 0.62 * WIDTH * cells.shape[0] / cells.shape[1] + 1.4)), note)
    axes = figure.subplots()
    extent = (-0.5, cells.shape[1] - 0.5, cells.shape[0] - 0.5, -0.5)
    image = axes.imshow(shown, cmap="cividis", interpolation="none", aspect="equal", extent=extent)
    bar = figure.colorbar(image, ax=axes, shrink=0.85, format=lambda value, _: number(value))
    bar.set_label(with_unit(value_label, unit))
    bar.outline.set_visible(False)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    if x_names:
        axes.set_xticks(
            range(len(x_names)), x_names, rotation=50, horizontalalignment="right", rotation_mode="anchor"
        )
    if y_names:
        axes.set_yticks(range(len(y_names)), y_names)
    axes.tick_params(length=0 if x_names or y_names else 3)
    if block == 1 and max(cells.shape) <= _WRITTEN:
        _write_numbers(axes, image, cells)
    return figure


def _blocks(cells: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Means over squares of cells, as few to a square as the limit allows; and the side of a square."""
    block = ceil(max(cells.shape) / _MOST_CELLS)
    if block == 1:
        return cells, 1
    rows, columns = (np.arange(0, side, block) for side in cells.shape)
    sums = np.add.reduceat(np.add.reduceat(np.nan_to_num(cells), rows, 0), columns, 1)
    counts = np.add.reduceat(np.add.reduceat(np.isfinite(cells).astype(np.float64), rows, 0), columns, 1)
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0), block


def _write_numbers(axes: Axes, image: AxesImage, cells: NDArray[np.float64]) -> None:
    lightness = np.asarray(image.norm(cells), dtype=np.float64)
    size = min(8.0, 90 / max(cells.shape))
    for (row, column), value in np.ndenumerate(cells):
        if np.isfinite(value):
            axes.text(
                column,
                row,
                number(float(f"{value:.3g}")),
                fontsize=size,
                color=INK if lightness[row, column] > 0.55 else "white",
                horizontalalignment="center",
                verticalalignment="center",
            )
