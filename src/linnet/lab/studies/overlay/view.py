"""A study as tables, plots and targets see it."""

from __future__ import annotations

from math import log

from msgspec import Struct

from linnet.lab.report.published import Published
from linnet.lab.studies.groups.metrics import fit_line
from linnet.lab.studies.overlay.metrics import Outcomes
from linnet.lab.studies.overlay.parameters import OverlayParameters
from linnet.lab.studies.overlay.workload import DEGREES, RINGS

LAST_ROUNDS = 5
"""Points of a curve at its end that are taken together."""


class View(Struct, frozen=True):
    """All that there is to show."""

    parameters: OverlayParameters
    outcomes: Outcomes
    published: Published
    missing: tuple[str, ...]
    """Real data that was not found."""
    latency: str
    origins: tuple[str, ...]

    def peak(self, setting: str, part: str = "lying", whole: str = "places") -> float | None:
        """The highest share of liars in views, after the first rounds."""
        curve = self.outcomes.curve(setting, part, whole)
        late = [share for bin, share in curve.items() if bin >= 10]
        return max(late) if late else None

    def end(self, setting: str, part: str = "lying", whole: str = "places") -> float | None:
        """Their share at the end."""
        curve = list(self.outcomes.curve(setting, part, whole).values())[-LAST_ROUNDS:]
        return sum(curve) / len(curve) if curve else None

    def hops(self, nodes: int, fanout: int, failed: float = 0.0) -> float | None:
        """Mean hops over a large ring."""
        setting = f"{nodes}|{fanout}|{failed:g}"
        hops = self.outcomes.mean(RINGS, setting, "hops")
        reached = self.outcomes.mean(RINGS, setting, "reached")
        return hops / reached if hops is not None and reached else None

    def degree(self, order: str, each: int) -> float | None:
        """Neighbours of a node with so many subscriptions."""
        return self.outcomes.mean(DEGREES, f"{order}|{each}", "mean_degree", 1000)

    def degree_power(self, order: str) -> float | None:
        """By which power of the subscriptions neighbours grow; None of fewer than two."""
        found = {each: self.degree(order, each) for each in self.parameters.growing}
        points = [(log(each), log(value)) for each, value in found.items() if value]
        if len(points) < 2:
            return None
        return fit_line([x for x, _ in points], [y for _, y in points]).slope
