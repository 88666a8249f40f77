"""Everyone at once: how the two control protocols take a mass join, with and without a throttle.

Juslenius 2021, section 5.4.2: the naive protocol had to be throttled from 1,000 nodes on, and still
was not regular; the one with counters needs no throttle. Section 5.4.3: what the naive one builds
prefers near nodes by accident.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from linnet.overlay.config import DEFAULT_DEGREE, Control
from linnet.sim.scenario import StreamScenario
from linnet.sim.world import FIRST_JOIN, StreamWorld
from linnet.trace.sink import NullTrace, TraceSink

MEASURED_AT = 120.0
"""Virtual second at which an overlay is looked at, regular or not."""


class MassJoin(Struct, frozen=True):
    """What one protocol has built at the time of the look."""

    control: Control
    join: float
    """Seconds between joins; 0: all at once."""
    nodes: int
    regular: bool
    degrees: dict[int, int]
    """Nodes by degree."""
    violations: int
    """Nodes that have not the degree asked for."""
    one_sided: int
    """Neighbours that do not count their neighbour as one."""
    converged_at: float | None
    """Virtual seconds after the last join at which the overlay changed last."""
    control_messages: int
    statuses_stale: int
    mean_edge_delay_ms: float
    pair_mean_delay_ms: float


def mass_join(
    nodes: int = 1000,
    degree: int = DEFAULT_DEGREE,
    seed: int = 1,
    *,
    latency: str = "aws",
    throttle: float = 0.05,
    measured_at: float = MEASURED_AT,
    progress: Callable[[float, str], None] | None = None,
) -> list[MassJoin]:
    """Both protocols, all joining at once and one after another, side by side."""
    cases = [(control, join) for control in (Control.COUNTER, Control.NAIVE) for join in (0.0, throttle)]
    results = []
    for number, (control, join) in enumerate(cases):
        if progress is not None:
            progress(number / len(cases), f"{control}, {f'every {join} s' if join else 'all at once'}")
        scenario = StreamScenario(nodes, degree, control, latency=latency, seed=seed, join=join)
        results.append(join_once(scenario, measured_at))
    return results


def join_once(
    scenario: StreamScenario, measured_at: float = MEASURED_AT, trace: TraceSink | None = None
) -> MassJoin:
    """Let a scenario's nodes join, and look at the overlay at a virtual second."""
    world = StreamWorld(scenario, NullTrace() if trace is None else trace)
    world.join()
    last_join = FIRST_JOIN + (scenario.nodes - 1) * scenario.join
    world.network.run(measured_at)
    overlay = world.overlay()
    edges = world.edges(overlay)
    degrees = overlay.degrees()
    converged_at = world.converged_at
    return MassJoin(
        control=scenario.control,
        join=scenario.join,
        nodes=scenario.nodes,
        regular=overlay.is_regular(),
        degrees=dict(sorted(degrees.items())),
        violations=scenario.nodes - degrees[min(scenario.degree, scenario.nodes - 1)],
        one_sided=sum((other, peer) not in edges for peer, other in edges),
        converged_at=None if converged_at is None else max(0.0, converged_at - last_join),
        control_messages=world.control_messages,
        statuses_stale=world.meter.stale,
        mean_edge_delay_ms=1000 * sum(edges.values()) / len(edges) if edges else 0.0,
        pair_mean_delay_ms=1000 * world.pair_mean(),
    )
