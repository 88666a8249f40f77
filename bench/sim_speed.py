"""How fast the simulator is: by itself, with a flood of tiny machines, and with the shipped node.

python bench/sim_speed.py [NODES [MESSAGES]]
"""

from __future__ import annotations

import resource
import sys
import time

from tests.machines import Flooder

from linnet.peer.interface import NodeMachine
from linnet.sim.links import LinkModel, aws_latency
from linnet.sim.network import Network
from linnet.sim.streams.course import run_streams
from linnet.sim.streams.world import StreamScenario, StreamWorld
from linnet.streams.commands import Publish
from linnet.testing.networks import build, random_edges
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Record, TraceSink


class Counting:
    """Counts records and keeps none: what is left is the network's own share."""

    def __init__(self) -> None:
        self.records = 0

    def write(self, node: bytes, record: Record, now: float) -> None:
        self.records += 1

    def close(self) -> None:
        pass


def flood(nodes: int, messages: int, trace: TraceSink | None) -> float:
    """Messages handled per second of wall-clock time."""
    network = Network(1, LinkModel(aws_latency()), trace)
    machines: list[NodeMachine] = [Flooder() for _ in range(nodes)]
    left = iter(machines)
    peers = build(network, [f"n{i}" for i in range(nodes)], lambda: next(left), random_edges(1, nodes, 4))
    before = network.handled
    for number in range(messages):
        network.ask(peers[number % nodes], Publish("", (b"%d" % number,)), at=60.0 + number)
    began = time.perf_counter()
    network.run_until_quiet()
    return (network.handled - before) / (time.perf_counter() - began)


def shipped(nodes: int, messages: int) -> tuple[float, float]:
    """The shipped node with a full trace: messages handled per second, and MB per 1,000 nodes joined."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    world = StreamWorld(StreamScenario(nodes, seed=2), ColumnTrace())
    world.join()
    world.settle(lambda done: None)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    report = run_streams(StreamScenario(nodes, messages=messages, gap=0.05))
    return report.receives_per_second, grown / 1024 * 1000 / nodes


def main() -> None:
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 2048
    messages = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    handled, megabytes = shipped(nodes, messages)
    print(f"{nodes} nodes, {messages} messages, messages handled per second")
    print(f"  shipped node    {handled:10,.0f}   full trace; {megabytes:.1f} MB per 1,000 nodes joined")
    print(f"  no trace        {flood(nodes, messages, None):10,.0f}")
    print(f"  records counted {flood(nodes, messages, Counting()):10,.0f}")


if __name__ == "__main__":
    main()
