"""A whole study that nobody ran: plausible numbers for every size, mode and graph."""

from __future__ import annotations

from collections.abc import Callable
from math import log2

import numpy as np
import pytest
from msgspec.structs import replace

from linnet.lab.report.published import read_published
from linnet.lab.studies.streams.graphs import KINDS, SAMPLED
from linnet.lab.studies.streams.metrics import Outcomes
from linnet.lab.studies.streams.parameters import AT_ONCE, HELD, LIVE, MODES, PLAIN, SIZES, StreamsParameters
from linnet.lab.studies.streams.randomness import Randomness
from linnet.lab.studies.streams.view import View

Change = Callable[[str, int, dict[str, int]], None]
"""Changes the sums of a run of this mode and size."""

SLOPES = {"counter": 26, "naive": 12, "aware": 4}
BASE = {"counter": 2, "naive": 70, "aware": 75}


def run_of(mode: str, size: int, degree: int, repeat: int) -> dict[str, int]:
    """One run of ten messages."""
    receipts = 10 * (size - 1)
    delay_us = 1000 * (BASE.get(mode, 2) + round(SLOPES.get(mode, 26) * log2(size))) + 100 * repeat
    return {
        "messages": 10,
        "expected": receipts,
        "reached": receipts,
        "receipts": receipts,
        "delay": receipts * delay_us,
        "sent": 10 * (size * degree - size + 1),
        "duplicates": 10 * (size * (degree - 2) + 2),
        "returned": 10,
        "control": 9 * size,
        "stale": 4,
        "settled": 2_000_000,
        "regular": 1,
        "links": size * degree,
        "near_links": size * degree // 16,
        "link_delay": size * degree * 68_000,
        "one_sided": 0,
        "all_pairs": size * (size - 1),
        "pair_delay": size * (size - 1) * 69_000,
        "path_delay": 1000 * (delay_us + 2000),
        "paths": 1000,
        "source_path_delay": receipts * delay_us,
        "source_paths": receipts,
        "diameter": round(log2(size)),
    }


def pools_of(mode: str, size: int) -> dict[str, dict[int, int]]:
    return {
        "delay_ms": {50: 10, 200: 80, 400: 10},
        "hops": {3: 50, 9: 40, 30: 10},
        "hop_delay": {3: 5_000_000, 9: 8_000_000, 30: 3_340_000},
        "degrees": {3: 1, 4: size - 1} if mode == "naive" else {4: size},
    }


@pytest.fixture
def whole() -> Callable[..., View]:
    """Makes the view of a study of all sizes, with ten repeats, as the parameters say."""

    def make(change: Change | None = None, parameters: StreamsParameters | None = None) -> View:
        chosen = parameters or StreamsParameters()
        keys = [(mode, size, chosen.degree) for mode in (*chosen.modes, *KINDS) for size in chosen.sizes]
        keys += [(AT_ONCE, 2048, chosen.degree), (LIVE, 128, chosen.degree), (SAMPLED, 6400, chosen.degree)]
        keys += [(mode, chosen.redundancy_size, d) for mode in (PLAIN, HELD) for d in chosen.degrees]
        totals = {
            key: [run_of(*key, repeat) for repeat in range(chosen.repeats)] for key in dict.fromkeys(keys)
        }
        for (mode, size, _), runs in totals.items():
            if change is not None:
                change(mode, size, runs[0])
        pools = {(*key, name): bins for key in keys for name, bins in pools_of(key[0], key[1]).items()}
        counts = np.full((8, 8), 4) - 4 * np.eye(8, dtype=np.int64)
        published = read_published("linnet.lab.studies.streams")
        return View(chosen, Outcomes(totals, pools), published, 68.64, 16, Randomness(counts, 7, 4))

    return make


@pytest.fixture
def view(whole: Callable[..., View]) -> View:
    """The default study."""
    return whole()


@pytest.fixture
def cut(whole: Callable[..., View]) -> View:
    """Two sizes, two repeats, one mode: a quick look."""
    quick = replace(StreamsParameters(), sizes=(32, 64), repeats=2, modes=MODES[:1])
    assert set(quick.sizes) < set(SIZES)
    return whole(parameters=quick)
