"""``linnet sim streams``: a stream over a simulated network."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import JsonOption, examples
from linnet.cli.sim_nemesis import NemesisOption, SeedsOption, run_nemesis
from linnet.cli.simulating import (
    LatencyOption,
    SeedOption,
    TraceOption,
    progress_bar,
    show_outcome,
    simulation,
    write_trace,
)

if TYPE_CHECKING:
    from linnet.sim.report import StreamReport

EPILOG = examples(
    "linnet sim streams --nodes 256 --messages 50 --seed 1",
    "linnet sim streams --nodes 2048 --control counter --latency aws --json",
    "linnet sim streams --nodes 64 --loss 0.01 --storage 2 --trace run.parquet",
    "linnet sim streams --nodes 512 --near",
    "linnet sim streams --nemesis all --seed 7",
)


class Control(StrEnum):
    """The control protocols of the overlay."""

    COUNTER = "counter"
    NAIVE = "naive"


Nodes = Annotated[int, typer.Option(min=2, max=100_000, help="Nodes in the stream, besides the tracker.")]
Degree = Annotated[int, typer.Option(min=2, max=64, help="Neighbours of a node.")]
ControlOption = Annotated[Control, typer.Option(help="Control protocol between tracker and nodes.")]
Near = Annotated[bool, typer.Option("--near", help="Half of the neighbours are near ones.")]
Messages = Annotated[
    int, typer.Option(min=0, max=1_000_000, help="Events in all, from sources that the seed draws.")
]
Join = Annotated[str, typer.Option(metavar="mass|SECONDS", help="All at once, or so long between joins.")]
Gap = Annotated[float, typer.Option(min=0.0, help="Seconds between events.")]
Loss = Annotated[float, typer.Option(min=0.0, max=0.9, help="Share of messages that vanish on a link.")]
Jitter = Annotated[float, typer.Option(min=0.0, help="Seconds that a message may take longer.")]
Churn = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", min=0.1, help="Mean time that a node stays up; unset: nobody goes."),
]
ChurnDown = Annotated[float, typer.Option(metavar="SECONDS", min=0.0, help="Mean time that it stays away.")]
Storage = Annotated[int, typer.Option(min=0, help="Nodes that keep the stream for the others.")]
Suppress = Annotated[
    float,
    typer.Option(metavar="SECONDS", min=0.0, help="Hold an event back to skip neighbours that have it."),
]


def streams(
    nodes: Nodes = 32,
    degree: Degree = 4,
    control: ControlOption = Control.COUNTER,
    near: Near = False,
    latency: LatencyOption = "aws",
    messages: Messages = 50,
    seed: SeedOption = 1,
    join: Join = "mass",
    gap: Gap = 1.0,
    loss: Loss = 0.0,
    jitter: Jitter = 0.0,
    churn: Churn = None,
    churn_down: ChurnDown = 5.0,
    storage: Storage = 0,
    suppress: Suppress = 0.0,
    trace: TraceOption = None,
    nemesis: NemesisOption = None,
    seeds: SeedsOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Run a stream over a simulated network: the shipped node, a virtual clock, seeded links.

    Nodes join, the tracker builds the overlay, events are flooded, and the delays are held against
    shortest paths. Times are virtual; the same seed gives the same trace_sha256 everywhere.
    """
    if nemesis is not None:
        run_nemesis("streams", nemesis, seed, seeds, as_json)
        return
    with simulation():
        from linnet.overlay import config as overlay
        from linnet.sim.scenario import StreamScenario
        from linnet.sim.streams import run_streams
        from linnet.trace.columns import ColumnTrace

        scenario = StreamScenario(
            nodes=nodes,
            degree=degree,
            control=overlay.Control(control.value),
            near=near,
            latency=latency,
            messages=messages,
            seed=seed,
            join=_join_seconds(join),
            gap=gap,
            loss=loss,
            jitter=jitter,
            churn=churn,
            churn_down=churn_down,
            storage=storage,
            suppress=suppress,
        )
        kept = ColumnTrace()
        with progress_bar(as_json) as progress:
            report = run_streams(scenario, kept, progress)
        write_trace(kept, trace)
    show_outcome(report, _rows(report), as_json, True, ())


def _join_seconds(text: str) -> float:
    if text == "mass":
        return 0.0
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 3600:
        raise Failure(f"--join {text!r}: write mass, or seconds from 0 to 3600", ExitCode.USAGE)
    return seconds


def _rows(report: StreamReport) -> list[tuple[str, object]]:
    degrees = f"{report.degree_min} to {report.degree_max}"
    return [
        ("nodes", report.nodes),
        ("degrees", f"{report.degree_min}" if report.degree_min == report.degree_max else degrees),
        ("events", report.messages),
        ("completeness", f"{report.completeness:.6f}"),
        ("sends per event", report.sends_per_message),
        ("mean delay, ms", report.mean_delay_ms),
        ("mean of shortest paths, ms", report.estimate_ms),
        ("the same from all sources, ms", report.estimate_all_ms),
        ("99 % delay, ms", report.p99_delay_ms),
        ("hops, mean and most", f"{report.mean_hops:.2f} and {report.max_hops}"),
        ("mean delay of links, ms", report.mean_edge_delay_ms),
        ("mean delay of pairs, ms", report.pair_mean_delay_ms),
        ("overlay settled at, s", report.converged_at),
        ("control messages until then", report.control_messages),
        ("virtual time, s", report.virtual_seconds),
        ("wall-clock time, s", report.wall_seconds),
        ("messages handled a second", round(report.receives_per_second)),
        ("trace_sha256", report.trace_sha256),
    ]
