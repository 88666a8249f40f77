"""Run by `test_replay` in processes of its own: prints what must not depend on the hash seed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from msgspec.structs import asdict
from tests.machines import Flooder
from tests.sim.test_light_network import chatting

from linnet.overlay.config import Control
from linnet.peer.interface import NodeMachine
from linnet.sim.churn import drawn_churn, schedule_churn
from linnet.sim.groups.scenario import GroupScenario, run_groups
from linnet.sim.links import LinkModel, aws_latency
from linnet.sim.network import Network
from linnet.sim.rooms.scenario import RoomScenario, run_rooms
from linnet.sim.streams.course import run_streams
from linnet.sim.streams.world import StreamScenario
from linnet.streams.commands import Publish
from linnet.testing.networks import RowTrace, build, random_edges


def flood(seed: int) -> str:
    """A flood with all that links can do."""
    trace = RowTrace()
    network = Network(seed, LinkModel(aws_latency(), jitter=0.05, loss=0.05, bandwidth=10_000.0), trace)
    peers = build(network, [f"n{n}" for n in range(24)], Flooder, random_edges(seed, 24, 4))

    def revive(peer: bytes) -> NodeMachine:
        return Flooder()

    schedule_churn(network, drawn_churn(seed, peers[:6], (10.0, 30.0), 10.0, 2.0), revive)
    network.at(15.0, lambda: network.partition([peers[12:]]))
    for number in range(20):
        network.ask(peers[number], Publish("", (b"%d" % number,)), at=10.0 + number)
    network.run(60.0)
    assert len(trace.rows) > 500
    return trace.sha256()


def streams(seed: int) -> Iterator[str]:
    """Both control protocols, and one with loss, churn and storage."""
    for control in Control:
        yield run_streams(StreamScenario(nodes=16, messages=4, control=control, seed=seed)).trace_sha256
    scenario = StreamScenario(
        nodes=16, messages=8, near=True, loss=0.02, jitter=0.02, churn=10.0, storage=2, seed=seed
    )
    yield run_streams(scenario).trace_sha256


def rooms(seed: int) -> object:
    scenario = RoomScenario(peers=5, relays=2, messages=15, loss=0.02, seed=seed)
    return asdict(run_rooms(scenario).timeless())


def groups(seed: int) -> object:
    return asdict(run_groups(GroupScenario(members=4, ops=20, partitions=1, thefts=2, seed=seed)).timeless())


RUNS: dict[str, Callable[[int], object]] = {
    "flood": flood,
    "light": chatting,
    "streams": lambda seed: list(streams(seed)),
    "rooms": rooms,
    "groups": groups,
}

if __name__ == "__main__":
    print(RUNS[sys.argv[1]](int(sys.argv[2])))
