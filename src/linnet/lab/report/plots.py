"""The plots of a report, each a function that returns SVG text.

The drawing itself is done by functions of the same names and arguments that return a matplotlib `Figure`:
whoever wants another format calls those within `canvas.style()`.
"""

from __future__ import annotations

from linnet.lab.report import charts, heat, steps, trade
from linnet.lab.report.canvas import as_svg
from linnet.lab.report.charts import Line
from linnet.lab.report.trade import Choice

__all__ = ["Choice", "Line", "bars", "ecdf", "ecdf_panels", "lines", "matrix", "scatter", "trade_off"]

ecdf = as_svg(steps.ecdf)
ecdf_panels = as_svg(steps.ecdf_panels)
lines = as_svg(charts.lines)
bars = as_svg(charts.bars)
scatter = as_svg(charts.scatter)
matrix = as_svg(heat.matrix)
trade_off = as_svg(trade.trade_off)
