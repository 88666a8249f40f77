"""Delays in bins, against a loop over every delivery."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from tests.lab.audit.stage import Staged
from tests.lab.audit.tales import Oracle

from linnet.lab.bins import NEVER, bin_of


def test_every_delivery_is_in_its_bin(staged: Staged, oracle: Oracle) -> None:
    readers = oracle.readers()
    wanted: Counter[tuple[bytes, bytes, str, int]] = Counter()
    again: Counter[tuple[bytes, bytes, str, int]] = Counter()
    least: dict[tuple[bytes, bytes], list[int]] = defaultdict(list)
    for (event, node), came in oracle.arrivals.items():
        author, published, _ = oracle.published.get(event, (None, None, None))
        first = min(time for time, _ in came)
        if author is None or published is None:
            standing, bin = "unpublished", NEVER
        else:
            standing = "owed" if published >= readers[event[0], node][0] else "history"
            bin = int(bin_of(np.array([max(0, first - published) // 1000]))[0])
            if first < published:
                least[author, node].append(first - published)
        wanted[event[0], node, standing, bin] += 1
        again[event[0], node, standing, bin] += len(came) - 1
    found: Counter[tuple[bytes, bytes, str, int]] = Counter()
    repeated: Counter[tuple[bytes, bytes, str, int]] = Counter()
    early: dict[tuple[bytes, bytes], list[int]] = defaultdict(list)
    for row in staged.delays.collect():
        node = staged.name(row.receiver)
        key = (bytes(row.topic), node, row.standing, row.bin)
        found[key] += row["count"]
        repeated[key] += row.repeated
        if row.early is not None:
            early[staged.name(row.early), node].append(row.least_us)
    assert found == wanted
    assert repeated == again
    assert {pair: min(all_) for pair, all_ in early.items()} == {
        pair: min(all_) for pair, all_ in least.items()
    }
    assert early, "the trace has clocks that differ"
