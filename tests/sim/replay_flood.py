"""Run by `test_replay` in processes of its own: a flood with all that links can do; prints its hash."""

from __future__ import annotations

import sys

from linnet.peer.interface import NodeMachine
from linnet.sim.churn import drawn_churn, schedule_churn
from linnet.sim.links import LinkModel, aws_latency
from linnet.sim.network import Network
from linnet.streams.commands import Publish
from linnet.testing.machines import Flooder
from linnet.testing.networks import RowTrace, build, random_edges


def main(seed: int) -> None:
    trace = RowTrace()
    network = Network(seed, LinkModel(aws_latency(), jitter=0.05, loss=0.05, bandwidth=10_000.0), trace)
    peers = build(network, [f"n{n}" for n in range(24)], Flooder, random_edges(seed, 24, 4))

    def revive(peer: bytes) -> NodeMachine:
        return Flooder()

    schedule_churn(network, drawn_churn(seed, peers[:6], 10.0, 30.0, 10.0, 2.0), revive)
    network.at(15.0, lambda: network.partition([peers[12:]]))
    for number in range(20):
        network.ask(peers[number], Publish("", (b"%d" % number,)), at=10.0 + number)
    network.run(60.0)
    print(trace.sha256(), len(trace.rows))


if __name__ == "__main__":
    main(int(sys.argv[1]))
