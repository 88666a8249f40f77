"""The shipped node in simulation: how much does a larger network cost?

Virtual time, seeded links with the latencies between 16 regions; equal seeds give equal runs.
Run it: python examples/simulate.py (needs linnet[sim])
"""

from __future__ import annotations

from linnet.sim.scenario import StreamScenario
from linnet.sim.streams import run_streams


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
