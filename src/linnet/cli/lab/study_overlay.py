"""``linnet lab study overlay``: overlays without trackers, attacked, disturbed, and beside a tracker's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.lab.options import (
    MasterOption,
    MemoryOption,
    OutOption,
    SeedOption,
    say_report,
    workshop,
)
from linnet.cli.options import JsonOption, examples

EPILOG = examples(
    "linnet lab study overlay --out overlay",
    "linnet lab study overlay --out overlay --data sets --nodes 200 --repeats 3",
    "linnet lab study overlay --out overlay --scale 10000 --subscriptions 10",
)

Data = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        exists=True,
        file_okay=False,
        help="Real subscriptions, phones and latencies: see docs/lab/overlay-study.md.",
    ),
]
Nodes = Annotated[int, typer.Option(min=16, max=5000, help="Nodes of each overlay.")]
TopicCount = Annotated[int, typer.Option("--topics", min=2, max=5000, help="Topics of an overlay at most.")]
Subscriptions = Annotated[int, typer.Option(min=1, max=1000, help="Topics of a node, or of a user at most.")]
Rounds = Annotated[int, typer.Option(min=5, help="Rounds of gossip after the warm-up.")]
Repeats = Annotated[int, typer.Option(min=1, help="Runs of each overlay, with other seeds.")]
AttackNodes = Annotated[int, typer.Option(min=50, help="Nodes of the runs that attack peer sampling.")]
AttackRounds = Annotated[int, typer.Option(min=10, help="Rounds of these.")]
AttackRepeats = Annotated[int, typer.Option(min=1, help="Runs of each of these, with other seeds.")]
FilterUsers = Annotated[int, typer.Option(min=20, max=2000, help="Users whose filters are compared.")]
RingSizes = Annotated[str, typer.Option(metavar="N,N,...", help="Members of the large rings.")]
Growing = Annotated[
    str, typer.Option(metavar="N,N,...", help="Subscriptions of a node in the runs about degrees.")
]
Scale = Annotated[
    int, typer.Option(min=0, max=20_000, help="One overlay of so many nodes and topics; 0: none. Takes long.")
]


def overlay(
    out: OutOption,
    data: Data = None,
    nodes: Nodes = 120,
    topics: TopicCount = 60,
    subscriptions: Subscriptions = 8,
    rounds: Rounds = 60,
    repeats: Repeats = 1,
    attack_nodes: AttackNodes = 400,
    attack_rounds: AttackRounds = 400,
    attack_repeats: AttackRepeats = 1,
    filter_users: FilterUsers = 200,
    ring_sizes: RingSizes = "100,1000,10000",
    growing: Growing = "2,8,32",
    scale: Scale = 0,
    seed: SeedOption = 1,
    master: MasterOption = "local[*]",
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Attack, disturb and measure overlays without trackers, and hold them against a tracker's.

    Liars' share of views for the shipped sampler and published ones, what randomised filters find and tell,
    hops and reach of rings, whole overlays with liars and churn, failures, a partition, newcomers, and a
    table that tells which overlay to choose. A study that was interrupted goes on where it was.
    """
    sizes, grown = _numbers("--ring-sizes", ring_sizes), _numbers("--growing", growing)
    with workshop(out, master, memory, as_json) as shop:
        from linnet.lab.report.writing import write_report
        from linnet.lab.studies.overlay.parameters import OverlayParameters
        from linnet.lab.studies.overlay.study import study

        report = study(
            shop,
            OverlayParameters(
                data="" if data is None else str(data),
                nodes=nodes,
                topics=topics,
                subscriptions=subscriptions,
                rounds=rounds,
                repeats=repeats,
                attack_nodes=attack_nodes,
                attack_rounds=attack_rounds,
                attack_repeats=attack_repeats,
                filter_users=filter_users,
                ring_sizes=sizes,
                growing=grown,
                scale=scale,
                seed=seed,
            ),
        )
        write_report(report, out)
    say_report(report, out, as_json)


def _numbers(option: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise Failure(
            f"{option} {text!r}: write numbers with commas between, such as 100,1000", ExitCode.USAGE
        ) from None
