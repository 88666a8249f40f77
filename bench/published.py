"""Delays of the overlays that trackers build, beside those of Juslenius 2021, Table 5.3.

``python -m bench.published`` runs seeds 1 to 50 for 32 and 64 nodes and 1 to 10 above, some minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from statistics import mean

from linnet.sim.streams.course import run_streams
from linnet.sim.streams.world import StreamScenario

ESTIMATES_MS = {32: 131, 64: 159, 128: 182, 256: 211, 512: 240, 1024: 263, 2048: 287}
"""Nodes, and the mean of all shortest paths in the overlays of the thesis (WebRTC version)."""

MEASURED_MS = {32: 137, 64: 161, 128: 184, 256: 211, 512: 241, 1024: 266, 2048: 288}
"""What the thesis measured in the field in the same overlays."""

_COLUMNS = (
    "nodes",
    "graphs",
    "here, ms",
    "lowest, highest",
    "estimate there, ms",
    "gap",
    "measured there, ms",
)


def row(nodes: int, seeds: range) -> str:
    """One line of the table."""
    scenarios = [StreamScenario(nodes=nodes, messages=1, seed=seed) for seed in seeds]
    found = [run_streams(scenario).estimate_all_ms for scenario in scenarios]
    published = ESTIMATES_MS[nodes]
    gap = f"{100 * (mean(found) / published - 1):+.1f} %"
    spread = f"{min(found):.0f}, {max(found):.0f}"
    cells = (nodes, len(found), f"{mean(found):.1f}", spread, published, gap, MEASURED_MS[nodes])
    return _line(cells)


def _line(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """Print the table, line by line as it is found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--most", type=int, default=2048, metavar="NODES", help="stop at this size")
    most: int = parser.parse_args().most
    print(_line(_COLUMNS))
    print("|---" * len(_COLUMNS) + "|")
    for nodes in ESTIMATES_MS:
        if nodes <= most:
            print(row(nodes, range(1, 51 if nodes <= 64 else 11)), flush=True)


if __name__ == "__main__":
    main()
