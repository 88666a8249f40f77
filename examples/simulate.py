"""Simulate the shipped node: how much does a larger network cost?

Time is virtual, and seeded links have the latencies between 16 regions. Equal seeds give equal runs.
Run it: python examples/simulate.py (needs linnet[sim])
"""

from __future__ import annotations

from linnet.sim.streams.course import run_streams
from linnet.sim.streams.world import StreamScenario


def main() -> None:
    print("nodes  reached  mean delay  shortest paths  sends per event")
    for nodes in (8, 16, 32):
        report = run_streams(StreamScenario(nodes=nodes, messages=20, seed=7))
        print(
            f"{report.nodes:5}  {report.completeness:6.0%}  {report.mean_delay_ms:7.1f} ms"
            f"  {report.estimate_ms:11.1f} ms  {report.sends_per_message:15.1f}"
        )


if __name__ == "__main__":
    main()
