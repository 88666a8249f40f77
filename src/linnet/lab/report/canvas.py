"""How every plot of a report looks, and how it becomes SVG.

Series differ in colour *and* in dash, marker and hatch, so that nothing is said by colour alone. The
colours are those of Okabe and Ito, which people with colour-blindness tell apart, less the yellow, which
does not show on white. Text stays text, in whatever sans-serif the reader has. The same data give the same
bytes: no date, no drawn ids.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from html import escape
from io import StringIO
from textwrap import fill
from typing import Any, ParamSpec, TypeAlias

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from msgspec import Struct

_Given = ParamSpec("_Given")
Dash: TypeAlias = str | tuple[int, tuple[float, ...]]

_PATH = re.compile(r' d="[^"]+"')
_DIGITS = re.compile(r"(\.\d\d)\d+")
"""A hundredth of a point is finer than any screen or printer; more digits only make files large."""

WIDTH = 7.2
"""Inches; about as wide as the text of the page."""
INK = "#1b1f24"
FAINT = "#d8dde3"
NOTE_SIZE = 8.0

_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "sans-serif"],
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.labelsize": 9.5,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#6b7480",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": INK,
    "ytick.color": INK,
    "lines.linewidth": 1.7,
    "lines.markersize": 5.5,
    "hatch.linewidth": 0.6,
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "svg.fonttype": "none",
    "svg.hashsalt": "linnet",
}


class Look(Struct, frozen=True):
    """What makes one series different from the others, with or without colour."""

    colour: str
    dash: Dash
    marker: str
    hatch: str


_LOOKS = (
    Look("#0072B2", "-", "o", ""),
    Look("#D55E00", (0, (5.0, 2.0)), "s", "////"),
    Look("#009E73", (0, (1.5, 1.5)), "^", ".."),
    Look("#CC79A7", (0, (7.0, 2.0, 1.5, 2.0)), "D", "xx"),
    Look("#000000", (0, (3.0, 1.2, 1.0, 1.2, 1.0, 1.2)), "v", "--"),
    Look("#E69F00", (0, (9.0, 3.0)), "P", "\\\\\\\\"),
    Look("#56B4E9", (0, (2.5, 1.0)), "X", "++"),
)


def look(number: int) -> Look:
    """The look of the series of this number; after seven colours the markers still differ for a while."""
    plain = _LOOKS[number % len(_LOOKS)]
    turn = number // len(_LOOKS)
    other = _LOOKS[(number + 2 * turn) % len(_LOOKS)]
    return Look(plain.colour, other.dash, other.marker, other.hatch)


@contextmanager
def style() -> Iterator[None]:
    """While this lasts, figures are made and saved in the style of the report."""
    with mpl.rc_context(_STYLE):
        yield


def new_figure(title: str, height: float, note: str = "") -> Figure:
    """An empty figure of the width of a page, with a note in small letters at its foot."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained", label=title)
    FigureCanvasAgg(figure)
    if note:
        figure.supxlabel(fill(note, 110), fontsize=NOTE_SIZE, x=0.01, horizontalalignment="left")
    return figure


def add_legend(figure: Figure, labels: int) -> None:
    """Names of the series above the data, out of their way."""
    if labels:
        axes = figure.axes[0]
        handles, names = axes.get_legend_handles_labels()
        longest = max(len(name) for name in names)
        columns = max(1, min(labels, 100 // (longest + 9)))
        figure.legend(handles, names, loc="outside upper left", ncols=columns, borderaxespad=0.2)


def to_svg(figure: Figure) -> str:
    """The figure as an SVG element with its title for those who cannot see it."""
    text = StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    drawn = text.getvalue()
    element = _PATH.sub(lambda path: _DIGITS.sub(r"\1", path[0]), drawn[drawn.index("<svg") :].rstrip())
    head, rest = element.split(">", 1)
    return f'{head} role="img">\n <title>{escape(str(figure.get_label()))}</title>{rest}\n'


def as_svg(make: Callable[_Given, Figure]) -> Callable[_Given, str]:
    """The same function, styled and giving SVG text instead of a figure."""

    @wraps(make)
    def drawn(*args: _Given.args, **kwargs: _Given.kwargs) -> str:
        with style():
            return to_svg(make(*args, **kwargs))

    return drawn
