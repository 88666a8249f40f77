"""Run by `test_streams` in processes of its own: prints the hashes of a few scenarios."""

from __future__ import annotations

from linnet.overlay.config import Control
from linnet.sim.scenario import StreamScenario
from linnet.sim.streams import run_streams

SCENARIOS = [
    *(StreamScenario(nodes=16, messages=4, control=control, seed=5) for control in Control),
    StreamScenario(nodes=16, messages=8, near=True, loss=0.02, jitter=0.02, churn=10.0, storage=2, seed=5),
]


def main() -> None:
    for scenario in SCENARIOS:
        print(run_streams(scenario).trace_sha256)


if __name__ == "__main__":
    main()
