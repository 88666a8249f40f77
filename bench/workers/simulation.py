"""A worker that runs one simulation and tells how long it took, or how much memory it holds."""

from __future__ import annotations

import os
import time

from msgspec import Struct

from bench.machine import resident_bytes
from bench.workers.talk import Simulated, Weighed, role, say
from linnet.sim.streams.course import run_streams
from linnet.sim.streams.world import STREAM, StreamScenario, StreamWorld
from linnet.streams.commands import Publish
from linnet.trace.records import NullTrace


class SimulationRole(Struct, frozen=True):
    """What to simulate."""

    nodes: int
    messages: int
    weigh: bool
    """Whether to tell memory, without a trace, instead of speed, with a full one."""


class CpuClock:
    """Processor time of the part of a run in which events are published."""

    def __init__(self) -> None:
        self._began = 0.0
        self.seconds = 0.0

    def progress(self, done: float, what: str) -> None:
        """See `linnet.sim.streams.Progress`: the last word before the events begins the count."""
        if what.startswith("event"):
            self.seconds = time.process_time() - self._began
        elif done < 1.0:
            self._began = time.process_time()
        else:
            self.seconds = time.process_time() - self._began


def speed(given: SimulationRole) -> Simulated:
    """Events close together, so that data is nearly all there is."""
    clock = CpuClock()
    scenario = StreamScenario(nodes=given.nodes, messages=given.messages, gap=0.01)
    report = run_streams(scenario, progress=clock.progress)
    return Simulated(report.received, report.received / report.receives_per_second, clock.seconds)


def weigh(given: SimulationRole) -> Weighed:
    """The nodes themselves: whoever wants a trace pays for it separately."""
    empty = _resident()
    world = StreamWorld(StreamScenario(nodes=given.nodes), NullTrace())
    world.join()
    world.settle(lambda done: None)
    idle = _resident()
    network = world.network
    for number in range(given.messages):
        network.ask(world.peers[number % given.nodes], Publish(STREAM, (bytes(64),)))
        network.run(network.elapsed + 0.1)
    network.run(network.elapsed + 10.0)
    return Weighed(empty, idle, _resident())


def _resident() -> int:
    return resident_bytes(os.getpid()) or 0


if __name__ == "__main__":
    asked = role(SimulationRole)
    say(weigh(asked) if asked.weigh else speed(asked))
