"""Predicates that accept an event: the index beside a scan of all of them.

``python -m bench.content [--million]``. Ten predicates accept the event, however many others there are:
other topics, the same topics with other ranges, and one of two ranges that holds while the other does not.
Processor time of one core. Memory is what Python allocates for it, predicates not counted and counted.
"""

from __future__ import annotations

import argparse
import gc
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random

from bench.results import Measure, Plan
from linnet.content.matching_index import Index
from linnet.content.predicate import Attributes, Predicate, read_attributes, read_predicate

SECTION = "content"
SIZES = (10, 1_000, 100_000)
MILLION = 1_000_000
ACCEPTING = 10
EVENT = "market/stock/AAPL/price=50/volume=500"


def predicates(count: int, seed: int = 1) -> list[Predicate]:
    """Ten that accept the event, and others that do not, each unlike the others."""
    luck = Random(seed)
    chosen = [f"market/stock/AAPL/price[{49 - at},{51 + at}]" for at in range(5)]
    chosen += [f"stock/AAPL/price[{40 - at},60]/volume[0,{600 + at}]" for at in range(5)]
    while len(chosen) < count:
        low = luck.randrange(0, 10**6)
        high = low + luck.randrange(1, 5000)
        chosen.append(
            (
                f"market/stock/S{luck.randrange(10**6)}/price[{low},{high}]",
                f"market/stock/AAPL/price[{60 + low},{60 + high}]",
                f"stock/AAPL/price[0,100]/volume[{1000 + low},{1000 + high}]",
                f"weather/W{luck.randrange(10**6)}/wind[{low},{high})",
            )[luck.randrange(4)]
        )
    return [read_predicate(text) for text in chosen[:count]]


def build(kept: list[Predicate]) -> Index[int]:
    """An index of these."""
    index: Index[int] = Index()
    for number, predicate in enumerate(kept):
        index.add(number, predicate)
    return index


def scan(kept: list[Predicate], event: Attributes) -> list[int]:
    """What a plain scan finds."""
    conditions = dict(event.conditions)
    return [number for number, predicate in enumerate(kept) if predicate.accepts(conditions)]


def seconds_each(action: Callable[[], object], seconds: float) -> float:
    """Processor time of one call."""
    calls, started = 0, time.process_time()
    while (spent := time.process_time() - started) < seconds or not calls:
        action()
        calls += 1
    return spent / calls


def bytes_each(count: int) -> tuple[float, float]:
    """Bytes of an index for each predicate, without and with the predicates themselves."""
    gc.collect()
    tracemalloc.start()
    try:
        kept = predicates(count)
        before = tracemalloc.get_traced_memory()[0]
        index = build(kept)
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    return (after - before) / len(index), after / len(index)


def measure(plan: Plan, sizes: tuple[int, ...] = SIZES) -> list[Measure]:
    """All of it."""
    event = read_attributes(EVENT)
    taken: list[Measure] = []
    for size in (size for size in sizes if not plan.quick or size <= 1_000):
        kept = predicates(size)
        index = build(kept)
        if sorted(index.matching(event)) != scan(kept, event) or len(scan(kept, event)) != ACCEPTING:
            raise RuntimeError("the index does not find what a scan finds")
        runs = [seconds_each(lambda: index.matching(event), plan.seconds) for _ in range(plan.runs)]  # noqa: B023
        scans = [seconds_each(lambda: scan(kept, event), plan.seconds) for _ in range(plan.runs)]  # noqa: B023
        changes = [seconds_each(lambda: index.add(0, kept[0]), plan.seconds) for _ in range(plan.runs)]  # noqa: B023
        note = f"{ACCEPTING} of them accept the event"
        taken += [
            Measure(SECTION, f"{size:,}, index", "µs", tuple(1e6 * each for each in runs), note),
            Measure(SECTION, f"{size:,}, scan", "µs", tuple(1e6 * each for each in scans), note),
            Measure(SECTION, f"{size:,}, one out and in", "µs", tuple(1e6 * each for each in changes)),
        ]
    own, both = bytes_each(plan.count(100_000, 1_000))
    note = f"{both:,.0f} with the predicate itself"
    return [*taken, Measure(SECTION, "index, for each predicate", "bytes", (own,), note)]


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.content", description=__doc__)
    parser.add_argument(
        "--million", action="store_true", help="1,000,000 predicates as well: some minutes, 2 GB"
    )
    asked = parser.parse_args()

    sizes = (*SIZES, MILLION) if asked.million else SIZES
    for each in measure(Plan(3, 0.3, False, Path()), sizes):
        print(f"{each.name:32} {each.median or 0.0:14,.1f} {each.unit:6} {each.note}")


if __name__ == "__main__":
    main()
