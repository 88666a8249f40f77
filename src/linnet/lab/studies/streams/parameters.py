"""What can be chosen about the study of streams."""

from __future__ import annotations

from msgspec import Struct

from linnet.lab.errors import LabError
from linnet.overlay.config import DEFAULT_DEGREE

SIZES = (32, 64, 128, 256, 512, 1024, 2048)
"""Of the source, which ran 2 to 128 nodes in each of 16 regions."""

REPEATS = 10

COUNTER, NAIVE, AWARE = "counter", "naive", "aware"
MODES = (COUNTER, NAIVE, AWARE)
"""The control protocol with counters, the naive one, and the first with half of the links near."""

AT_ONCE = "naive-at-once"
"""Naive, without the throttle that sizes above `THROTTLED` have otherwise."""
LIVE = "naive-live"
"""Naive, with a tracker that goes on while events are published."""
PLAIN, HELD = "redundancy", "redundancy-held"
"""Counters with several degrees; and every event held back to skip neighbours that send it meanwhile."""

THROTTLED = 1000
"""Nodes above which the naive protocol needs a throttle (Juslenius 2021, section 5.4.2)."""

MEASURED_AT = 120.0
"""Virtual second at which naive overlays are measured, unless they are regular and calm before."""

AWARE_FOR = 45.0
"""Virtual seconds for which links are exchanged for nearer ones, one round in five seconds."""

HOLD = 0.05
"""Seconds that suppression holds an event back."""


class StreamsParameters(Struct, frozen=True, kw_only=True):
    """How much is run."""

    sizes: tuple[int, ...] = SIZES
    repeats: int = REPEATS
    modes: tuple[str, ...] = MODES
    degree: int = DEFAULT_DEGREE
    messages: int = 50
    """Events in each run."""
    throttle: float = 0.05
    """Seconds between joins of the naive protocol above `THROTTLED` nodes."""
    throttled_repeats: int = 2
    """Repeats of these at most: two take as long as all of another size."""
    latency: str = "aws"
    """``aws``, ``constant:MS``, a file as ``linnet sim`` takes it, or a folder with the table latencies."""
    degrees: tuple[int, ...] = (4, 6, 8, 10, 12, 14, 16)
    """Of the runs about redundancy; none: these are left out."""
    redundancy_size: int = 64
    pair_nodes: int = 200
    """Nodes of the graphs whose randomness is looked at."""
    pair_graphs: int = 200
    """How many of these; 0: none."""
    large: int = 10_000
    """Graphs up to this size are built without nodes, and estimated from sampled sources; 0: none."""
    sources: int = 32
    """Sources sampled in these."""
    seed: int = 1

    def checked(self) -> StreamsParameters:
        """These parameters; `LabError` says what cannot be run."""
        if not self.sizes or min(self.sizes) < 3 or max(self.sizes) > 10_000:
            raise LabError("--sizes: give one or more from 3 to 10000, such as 32,64")
        if len(set(self.sizes)) < len(self.sizes):
            raise LabError("--sizes: one of them is there twice")
        if unknown := [mode for mode in self.modes if mode not in MODES]:
            raise LabError(f"--modes: {unknown[0]!r} is none of {', '.join(MODES)}")
        if not self.modes or self.repeats < 1 or self.messages < 1:
            raise LabError("a study needs at least one mode, one repeat and one message")
        if self.degree < 3 or self.degree >= min(self.sizes):
            raise LabError(f"--degree {self.degree}: give 3 or more, and fewer than the smallest size")
        if any(not 3 <= degree < self.redundancy_size for degree in self.degrees):
            raise LabError(f"--degrees: give some from 3 to {self.redundancy_size - 1}")
        if self.large and not 100 <= self.large <= 1_000_000:
            raise LabError("--large: give 0, or a size from 100 to 1000000")
        if self.pair_graphs and self.pair_nodes <= self.degree:
            raise LabError("--pair-nodes: give more than the degree")
        return self

    @property
    def ordered(self) -> tuple[int, ...]:
        """The sizes, rising."""
        return tuple(sorted(self.sizes))

    @property
    def is_published(self) -> bool:
        """Whether this is the set-up of the source, so that its figures can be asked for."""
        return self.latency == "aws" and self.degree == DEFAULT_DEGREE

    def repeats_of(self, mode: str, size: int) -> int:
        """How often a size is run in a mode."""
        throttled = mode == NAIVE and size > THROTTLED
        return min(self.throttled_repeats, self.repeats) if throttled else self.repeats
