"""``linnet sim rooms``: a room whose members come and go, over a simulated network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

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
    from linnet.sim.rooms_report import RoomsReport

EPILOG = examples(
    "linnet sim rooms --peers 20 --relays 3 --messages 200 --offline 0.5 --bans 3 --seed 1",
    "linnet sim rooms --relays 0 --json",
    "linnet sim rooms --loss 0.01 --partition 60 --trace run.parquet",
    "linnet sim rooms --nemesis all --seed 7",
)

Peers = Annotated[int, typer.Option(min=2, max=1000, help="People in the room, with one device each.")]
Relays = Annotated[int, typer.Option(min=0, max=32, help="Relays of the room; they are always online.")]
Messages = Annotated[int, typer.Option(min=0, max=100_000, help="Messages in all, at random times.")]
Offline = Annotated[float, typer.Option(min=0.0, max=0.95, help="Share of the time that a peer is away.")]
Bans = Annotated[int, typer.Option(min=0, help="People who are banned on the way.")]
Demotions = Annotated[int, typer.Option(min=0, help="People who lose the level to speak on the way.")]
Loss = Annotated[float, typer.Option(min=0.0, max=0.9, help="Share of messages that vanish on a link.")]
Jitter = Annotated[float, typer.Option(min=0.0, help="Seconds that a message may take longer.")]
Partition = Annotated[
    float,
    typer.Option(metavar="SECONDS", min=0.0, help="For so long one half cannot reach the other half."),
]
Gap = Annotated[float, typer.Option(min=0.01, help="Seconds between messages, on average.")]


def rooms(
    peers: Peers = 20,
    relays: Relays = 3,
    messages: Messages = 200,
    offline: Offline = 0.5,
    bans: Bans = 3,
    demotions: Demotions = 2,
    seed: SeedOption = 1,
    loss: Loss = 0.0,
    jitter: Jitter = 0.0,
    partition: Partition = 0.0,
    latency: LatencyOption = "aws",
    gap: Gap = 1.0,
    trace: TraceOption = None,
    nemesis: NemesisOption = None,
    seeds: SeedsOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Run a room over a simulated network: the shipped node, a virtual clock, seeded links.

    People come and go, speak, and some are banned or demoted on the way. At the end all are online, and a
    judge that has every event works out who should have got what. Exits 1 if anything is missing, was
    delivered without permission, or is claimed wrongly. The same seed gives the same trace_sha256.
    """
    if nemesis is not None:
        run_nemesis("rooms", nemesis, seed, seeds, as_json)
        return
    with simulation():
        from linnet.sim.rooms import run_rooms
        from linnet.sim.rooms_scenario import RoomScenario
        from linnet.trace.columns import ColumnTrace

        scenario = RoomScenario(
            peers=peers,
            relays=relays,
            messages=messages,
            offline=offline,
            bans=bans,
            demotions=demotions,
            seed=seed,
            loss=loss,
            jitter=jitter,
            partition=partition,
            latency=latency,
            gap=gap,
        )
        kept = ColumnTrace()
        with progress_bar(as_json) as progress:
            report = run_rooms(scenario, kept, progress)
        write_trace(kept, trace)
    show_outcome(report, _rows(report), as_json, report.ok, (*report.undelivered, *report.ledger_wrong_lines))


def _rows(report: RoomsReport) -> list[tuple[str, object]]:
    return [
        ("peers and relays", f"{report.peers} and {report.relays}"),
        ("events, and messages among them", f"{report.events:,} and {report.messages:,}"),
        ("declined by the speaker's own node", report.declined),
        ("banned and demoted", f"{report.banned} and {report.demoted}"),
        ("share of time away", f"{report.offline_share:.3f}"),
        ("pairs of event and member", report.pairs),
        ("delivered by the end", f"{report.delivered_share:.6f}"),
        ("delivered at the first return", f"{report.first_return_share:.6f}"),
        ("delivered without permission", report.unauthorised_delivered),
        ("events that met a removal", report.endangered),
        ("soft-failed somewhere", report.soft_failed),
        ("different states at the end", report.distinct_states),
        ("states that are wrong", report.states_wrong),
        ("shown before their causes", report.causal_violations),
        ("shown twice", report.duplicate_deliveries),
        ("lines of ledgers", report.ledger_lines),
        ("of them wrong", report.ledger_wrong),
        ("of them behind the facts", report.ledger_pending),
        ("virtual time, s", report.virtual_seconds),
        ("wall-clock time, s", report.wall_seconds),
        ("trace_sha256", report.trace_sha256),
    ]
