"""Everything in one run: which sections there are, and what a run holds."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from bench import (
    appends,
    brokers,
    channel,
    content,
    encoding,
    gossip,
    groups,
    intersections,
    memory,
    names,
    network,
    places,
    rooms,
    signing,
    simulator,
)
from bench.crew import WorkerFailed, failure
from bench.machine import facts, load_average
from bench.results import Comparison, Measure, Plan
from bench.targets import compare

Section = Callable[[Plan], list[Measure]]

SECTIONS: dict[str, Section] = {
    "encoding": encoding.section,
    "events": signing.measure,
    "store": appends.measure,
    "simulator": simulator.measure,
    "rooms": rooms.measure,
    "channel": channel.measure,
    "places": places.measure,
    "groups": groups.measure,
    "gossip": gossip.measure,
    "intersections": intersections.measure,
    "content": content.measure,
    "network": network.measure,
    "brokers": brokers.measure,
    "memory": memory.measure,
    "names": names.measure,
}
"""By the names that ``--only`` takes, in the order in which they run."""


class Run(Struct, frozen=True):
    """All that was measured, and on what."""

    machine: dict[str, str]
    load_before: tuple[float, float, float]
    load_after: tuple[float, float, float]
    runs: int
    quick: bool
    seconds: float
    measures: tuple[Measure, ...]
    comparisons: tuple[Comparison, ...]
    to_come: tuple[str, ...] = ()
    """Sections that are not measured yet."""

    def as_json(self) -> dict[str, object]:
        """Everything, with what follows from it."""
        return {
            "machine": self.machine,
            "load_before": self.load_before,
            "load_after": self.load_after,
            "runs": self.runs,
            "quick": self.quick,
            "seconds": round(self.seconds, 1),
            "to_come": self.to_come,
            "measures": [
                {
                    "section": each.section,
                    "name": each.name,
                    "unit": each.unit,
                    "median": each.median,
                    "runs": each.runs,
                    "note": each.note,
                    "failed": each.failed,
                }
                for each in self.measures
            ],
            "targets": [
                {
                    "name": each.name,
                    "value": each.value,
                    "target": each.target,
                    "unit": each.unit,
                    "at_least": each.at_least,
                    "reached": each.reached,
                }
                for each in self.comparisons
            ],
        }


def run_all(
    only: Sequence[str],
    quick: bool,
    runs: int,
    directory: Path | None,
    tell: Callable[[str], None],
    keep: Callable[[Run], None] = lambda run: None,
) -> Run:
    """Measure the sections of these names, or all; after each, `keep` is handed what there is so far."""
    with tempfile.TemporaryDirectory(prefix="linnet-bench-", dir=directory) as below:
        place = Path(below).resolve()
        plan = Plan(runs, 0.1 if quick else 0.4, quick, place)
        before, began = load_average(), time.perf_counter()
        measures: list[Measure] = []
        names = list(only or SECTIONS)
        for number, name in enumerate(names, 1):
            tell(f"{name} ({number} of {len(names)})")
            try:
                measures += SECTIONS[name](plan)
            except WorkerFailed as error:
                measures.append(failure(name, name, error))
            run = Run(
                facts(place.parent),
                before,
                load_average(),
                runs,
                quick,
                time.perf_counter() - began,
                tuple(measures),
                tuple(compare(measures)),
                tuple(names[number:]),
            )
            keep(run)
        return run
