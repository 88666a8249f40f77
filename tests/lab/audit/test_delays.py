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
    spans: dict[tuple[bytes, bytes, str, int], list[int]] = defaultdict(list)
    for (event, node), came in oracle.arrivals.items():
        author, published, _ = oracle.published.get(event, (None, None, None))
        first = min(time for time, _ in came)
        if author is None or published is None:
            standing, bin = "unpublished", NEVER
        else:
            standing = "owed" if published >= readers[event[0], node][0] else "history"
            bin = int(bin_of(np.array([-(-max(0, first - published) // 1000)]))[0])
            spans[event[0], node, standing, bin].append(first - published)
            if first < published:
                least[author, node].append(first - published)
        wanted[event[0], node, standing, bin] += 1
        again[event[0], node, standing, bin] += len(came) - 1
    found: Counter[tuple[bytes, bytes, str, int]] = Counter()
    repeated: Counter[tuple[bytes, bytes, str, int]] = Counter()
    early: dict[tuple[bytes, bytes], list[int]] = defaultdict(list)
    sums: Counter[tuple[bytes, bytes, str, int]] = Counter()
    most: dict[tuple[bytes, bytes, str, int], int] = {}
    for row in staged.delays.collect():
        node = staged.name(row.receiver)
        key = (bytes(row.topic), node, row.standing, row.bin)
        found[key] += row["count"]
        repeated[key] += row.repeated
        if row.standing != "unpublished":
            sums[key] += row.sum_us
            most[key] = max(most.get(key, row.most_us), row.most_us)
        if row.early is not None:
            early[staged.name(row.early), node].append(row.least_us)
    assert found == wanted
    assert repeated == again
    assert sums == {key: sum(max(0, each) for each in all_) for key, all_ in spans.items()}
    assert most == {key: max(all_) for key, all_ in spans.items()}
    assert {pair: min(all_) for pair, all_ in early.items()} == {
        pair: min(all_) for pair, all_ in least.items()
    }
    assert early, "the trace has clocks that differ"
