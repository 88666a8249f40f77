"""``linnet sim places``: a host and guests who come and go, over a simulated network."""

from __future__ import annotations

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
    from linnet.sim.places import PlacesReport

EPILOG = examples(
    "linnet sim places --guests 100 --messages 20",
    "linnet sim places --guests 1000 --messages 50 --loss 0.05 --churn 0.2 --seed 1 --json",
    "linnet sim places --guests 50 --policy private --churn 0.2",
    "linnet sim places --guests 30 --fanout 3 --churn 0.5 --trace run.parquet",
    "linnet sim places --nemesis all --seed 7",
)

Guests = Annotated[int, typer.Option(min=1, max=10_000, help="Guests, with one device each.")]
Messages = Annotated[int, typer.Option(min=1, max=100_000, help="Announcements of the host.")]
Loss = Annotated[float, typer.Option(min=0.0, max=0.5, help="Share of messages that vanish on a link.")]
Churn = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=1.0,
        help="Share of guests who do not just stay: they enter late, are put out, or crash and come back.",
    ),
]
PolicyOption = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="Who comes in: anonymous, public, closed or private; the last two are encrypted.",
    ),
]
Fanout = Annotated[int, typer.Option(min=1, max=64, help="Guests that a node sends to.")]


def places(
    guests: Guests = 100,
    messages: Messages = 50,
    loss: Loss = 0.0,
    churn: Churn = 0.0,
    policy: PolicyOption = "public",
    fanout: Fanout = 8,
    latency: LatencyOption = "aws",
    seed: SeedOption = 1,
    trace: TraceOption = None,
    nemesis: NemesisOption = None,
    seeds: SeedsOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Run a place over a simulated network: the shipped node, a virtual clock, seeded links.

    The host announces and changes state; guests relay to each other. At the end a judge that knows all
    membership works out who may have what. Exits 1 if something is missing, is where it must not be, or if
    states differ. The same seed gives the same trace_sha256.
    """
    if nemesis is not None:
        run_nemesis("places", nemesis, seed, seeds, as_json)
        return
    with simulation():
        from linnet.places.deed import Policy
        from linnet.sim.places import PlacesScenario, run_places
        from linnet.trace.columns import ColumnTrace

        if policy not in tuple(Policy):
            raise Failure(f"{policy}: no policy of places ({', '.join(Policy)})", ExitCode.USAGE)
        scenario = PlacesScenario(
            policy=Policy(policy),
            guests=guests,
            messages=messages,
            loss=loss,
            churn=churn,
            fanout=fanout,
            latency=latency,
            seed=seed,
        )
        kept = ColumnTrace()
        with progress_bar(as_json) as progress:
            report = run_places(scenario, kept, progress)
        write_trace(kept, trace)
    show_outcome(report, _rows(report), as_json, report.ok, report.undelivered)


def _rows(report: PlacesReport) -> list[tuple[str, object]]:
    return [
        ("guests", report.guests),
        ("messages, notices included", report.messages),
        ("entered late, put out, crashed", f"{report.late}, {report.ejected}, {report.crashed}"),
        ("pairs of message and guest", f"{report.pairs:,}"),
        ("delivered by the end", f"{report.delivered_share:.6f}"),
        ("where they must not be", report.leaked),
        ("different states", report.distinct_state_hashes),
        ("sends of the host for each fragment", f"{report.origin_sends_per_message:.2f}"),
        ("of the node that sent most", f"{report.most_sends_per_message:.2f}"),
        ("mean hops", f"{report.mean_hops:.2f}"),
        ("duplicates for each that came", f"{report.duplicates_per_message:.2f}"),
        ("virtual time, s", report.virtual_seconds),
        ("wall-clock time, s", report.wall_seconds),
        ("trace_sha256", report.trace_sha256),
    ]
