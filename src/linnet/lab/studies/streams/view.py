"""All that the parts of the report look at."""

from __future__ import annotations

from msgspec import Struct

from linnet.lab.metrics.comparison import delay_penalty, mape, percent_error
from linnet.lab.metrics.growth import LogFit, fit_log
from linnet.lab.report.published import Published
from linnet.lab.studies.streams.graphs import SAMPLED
from linnet.lab.studies.streams.metrics import Key, Outcomes
from linnet.lab.studies.streams.parameters import COUNTER, StreamsParameters
from linnet.lab.studies.streams.randomness import Randomness

NAMES = {
    "counter": "counters",
    "naive": "naive",
    "aware": "half near",
    "naive-at-once": "naive, all at once",
    "naive-live": "naive, tracker goes on",
    "grown": "random (model)",
    "static": "static random",
    "lattice": "static lattice",
}
"""Modes and kinds in words."""

FAR = (6400, 10_000)
"""Sizes that the source speaks of and did not run."""


class View(Struct, frozen=True):
    """Parameters, what was run, and what is published."""

    parameters: StreamsParameters
    outcomes: Outcomes
    published: Published
    underlay_ms: float
    """Mean one-way delay over all cells of the latency table."""
    regions: int
    """Of the latency table."""
    randomness: Randomness | None = None

    def key(self, mode: str, size: int) -> Key:
        """The runs of a mode and size, with the study's degree."""
        return mode, size, self.parameters.degree

    def sizes(self, mode: str) -> list[int]:
        """Sizes that were run in a mode, rising."""
        degree = self.parameters.degree
        return sorted(size for name, size, links in self.outcomes.totals if (name, links) == (mode, degree))

    @property
    def modes(self) -> list[str]:
        """The modes of the study that were run."""
        return [mode for mode in self.parameters.modes if self.sizes(mode)]

    @property
    def largest(self) -> int:
        """The largest size of all modes."""
        return self.parameters.ordered[-1]

    def delay(self, mode: str, size: int) -> float:
        """Mean delay in milliseconds, each repeat counting alike."""
        return self.outcomes.delay(self.key(mode, size)).mean

    def estimate(self, mode: str, size: int) -> float:
        """Mean shortest path in milliseconds, each repeat counting alike."""
        return self.outcomes.estimate(self.key(mode, size)).mean

    def rdp(self, mode: str, size: int) -> float:
        """Mean delay by the mean delay of the underlay."""
        return delay_penalty(self.delay(mode, size), self.underlay_ms)

    def error(self, mode: str, size: int) -> float:
        """How far the estimate is off, in %."""
        return percent_error(self.delay(mode, size), self.estimate(mode, size))

    def mape(self, mode: str, least: int = 0) -> float | None:
        """Mean error over sizes; None if there are none."""
        sizes = [size for size in self.sizes(mode) if size >= least]
        return mape((self.delay(mode, size), self.estimate(mode, size)) for size in sizes) if sizes else None

    def growth(self, mode: str) -> LogFit | None:
        """Mean delay over log2 of the size; None of fewer than two sizes."""
        sizes = self.sizes(mode)
        return fit_log(sizes, [self.delay(mode, size) for size in sizes]) if len(sizes) > 1 else None

    def sampled(self) -> dict[int, float]:
        """Mean shortest path in milliseconds of the large graphs, by size."""
        return {size: self.estimate(SAMPLED, size) for size in self.sizes(SAMPLED)}

    def is_whole(self) -> bool:
        """Whether enough of the source's set-up was run for its figures to be asked for."""
        parameters = self.parameters
        return parameters.is_published and parameters.repeats >= 10 and COUNTER in parameters.modes
