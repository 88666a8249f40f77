"""Whether graphs that grow are random: how often each pair of joiners is linked, over many graphs."""

from __future__ import annotations

from math import sqrt

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from pyspark.sql import DataFrame

EARLY = 6
"""Joiners that count as the first."""


class Randomness(Struct, frozen=True):
    """Counts of pairs, and what they say."""

    counts: NDArray[np.int64]
    """In how many graphs nodes a and b were linked; symmetric, with an empty diagonal."""
    graphs: int
    degree: int

    @property
    def nodes(self) -> int:
        """Nodes of each graph."""
        return len(self.counts)

    @property
    def expected(self) -> float:
        """Probability of a link between two nodes (Juslenius 2021, Eq. 5.1)."""
        return self.degree / (self.nodes - 1)

    @property
    def mean(self) -> float:
        """Share of graphs in which a pair is linked, on average: the expected one if all are regular."""
        return float(self._shares().mean())

    @property
    def deviation(self) -> float:
        """Standard deviation of the shares over pairs."""
        return float(self._shares().std())

    @property
    def binomial(self) -> float:
        """What it would be if each graph were drawn anew and pairs did not care for each other."""
        return sqrt(self.expected * (1 - self.expected) / self.graphs)

    @property
    def early(self) -> float:
        """How much more often than expected the first joiners are linked with each other."""
        first = self.counts[:EARLY, :EARLY]
        pairs = len(first) * (len(first) - 1)
        return float(first.sum() / pairs / self.graphs / self.expected)

    @property
    def most(self) -> float:
        """The pair that is linked most often, by what is expected."""
        return float(self.counts.max() / self.graphs / self.expected)

    def _shares(self) -> NDArray[np.float64]:
        return self.counts[np.triu_indices(self.nodes, k=1)] / self.graphs


def read_randomness(pairs: DataFrame, nodes: int, graphs: int, degree: int) -> Randomness:
    """Gather the counts of all pairs: half of the nodes squared."""
    table = pairs.toArrow()
    a, b, found = (table[name].to_numpy() for name in ("a", "b", "graphs"))
    counts = np.zeros((nodes, nodes), dtype=np.int64)
    counts[a, b] = found
    counts[b, a] = found
    return Randomness(counts, graphs, degree)
