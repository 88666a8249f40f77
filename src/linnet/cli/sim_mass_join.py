"""``linnet sim mass-join``: both control protocols when everyone comes at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.options import JsonOption, examples
from linnet.cli.output import say_json, say_table
from linnet.cli.simulating import LatencyOption, SeedOption, progress_bar, simulation

if TYPE_CHECKING:
    from linnet.sim.mass_join import MassJoin

EPILOG = examples("linnet sim mass-join --nodes 200", "linnet sim mass-join --nodes 1000 --seed 7 --json")

_COLUMNS = (
    "control",
    "joins",
    "regular",
    "wrong degree ",
    "one-sided ",
    "settled after s ",
    "control messages ",
    "stale ",
    "mean link ms ",
    "mean pair ms ",
)

Nodes = Annotated[int, typer.Option(min=2, max=100_000, help="Nodes that join.")]
Degree = Annotated[int, typer.Option(min=2, max=64, help="Neighbours of a node.")]
Throttle = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.0, help="Between joins, in the throttled runs.")
]
MeasuredAt = Annotated[
    float, typer.Option("--at", metavar="SECONDS", min=1.0, help="Virtual second of the look.")
]


def mass_join(
    nodes: Nodes = 1000,
    degree: Degree = 4,
    seed: SeedOption = 1,
    latency: LatencyOption = "aws",
    throttle: Throttle = 0.05,
    at: MeasuredAt = 120.0,
    as_json: JsonOption = False,
) -> None:
    """Let everyone join at once, and one after another, with both control protocols.

    The overlays are looked at in the same virtual second, whether they are regular by then or not.
    """
    with simulation():
        from linnet.sim import mass_join as scenario

        with progress_bar(as_json) as progress:
            results = scenario.mass_join(
                nodes, degree, seed, latency=latency, throttle=throttle, measured_at=at, progress=progress
            )
    if as_json:
        say_json(results)
    else:
        say_table(_COLUMNS, map(_row, results))


def _row(result: MassJoin) -> tuple[object, ...]:
    return (
        result.control.value,
        f"every {result.join:g} s" if result.join else "all at once",
        result.regular,
        result.violations,
        result.one_sided,
        result.converged_at,
        result.control_messages,
        result.statuses_stale,
        result.mean_edge_delay_ms,
        result.pair_mean_delay_ms,
    )
